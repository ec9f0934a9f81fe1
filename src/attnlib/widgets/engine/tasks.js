// What a worker can train on: each task, by its name, makes what a training needs of a message.

/**
 * Sentences that come with the message itself: `sentences` are taken in turn, again and again, and
 * `heldOut` evaluate. A task returns {next, heldOut, relations}; next() gives another sentence.
 */
function given({ sentences, heldOut = [], relations = [] }) {
  let taken = 0;
  return { next: () => sentences[taken++ % sentences.length], heldOut, relations };
}

export const TASKS = { given };
