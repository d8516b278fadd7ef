// Runs a generator in slices between which the page can draw and answer.

/** How long the page may be busy at once. */
const SLICE_MS = 10;

/**
 * Runs `work` to its end; null if `signal` is aborted first. Short work ends in the first slice;
 * `between` is called after every other one.
 */
export async function inSlices<T>(
  work: Generator<void, T>,
  signal: AbortSignal,
  between: () => void = () => {},
): Promise<T | null> {
  for (;;) {
    const until = performance.now() + SLICE_MS;
    while (performance.now() < until) {
      if (signal.aborted) return null;
      const step = work.next();
      if (step.done) return step.value;
    }
    between();
    await nextTask();
  }
}

/** Runs `work` to its end at once. */
export function atOnce<T>(work: Generator<void, T>): T {
  for (;;) {
    const step = work.next();
    if (step.done) return step.value;
  }
}

// A message is a task of its own and, unlike a timer, is not made to wait 4 ms.
function nextTask(): Promise<void> {
  return new Promise((resolve) => {
    const channel = new MessageChannel();
    channel.port1.onmessage = () => {
      channel.port1.close();
      resolve();
    };
    channel.port2.postMessage(null);
  });
}
