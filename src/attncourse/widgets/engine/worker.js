// What runs in the worker that knows Concord and the tasks of symbols.

import { serve } from "./serving.js";
import { TASKS } from "./tasks.js";

export function run(scope) {
  serve(scope, TASKS);
}
