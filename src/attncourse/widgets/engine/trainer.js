// Trainings of Concord and the tasks of symbols.

import { makeStarter } from "./starter.js";
import { MODULES } from "./worker_code.js";

export const startTraining = makeStarter(MODULES);
