// Trainings of names.

import { MODULES } from "./names_worker_code.js";
import { makeStarter } from "./starter.js";

export const startTraining = makeStarter(MODULES);
