// What runs in the worker that knows names alone.

import { names } from "./names.js";
import { serve } from "./serving.js";
import { fresh } from "./streams.js";

const TASKS = { names: (message) => fresh(names, message) };

export function run(scope) {
  serve(scope, TASKS);
}
