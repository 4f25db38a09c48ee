import { Session } from 'node:inspector/promises';
import { fileURLToPath } from 'node:url';
import { relative } from 'node:path';

/** Their functions are the vocabulary of all others (house.md counts them so): what an object is, and what is logged. */
const vocabulary = ['objects', 'telemetry'];

/**
 * The files of `src` that have a function which ran during some work, without the vocabulary, by name.
 *
 * @param work what stands still before it and behind it.
 */
export async function filesDuring(work: () => Promise<void>): Promise<string[]> {
  const session = new Session();
  session.connect();
  await session.post('Profiler.enable');
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
  // What is taken starts the counts anew.
  await session.post('Profiler.takePreciseCoverage');
  await work();
  const { result } = await session.post('Profiler.takePreciseCoverage');
  session.disconnect();
  const source = fileURLToPath(new URL('../../../src/', import.meta.url));
  // The function at offset 0 is the module itself.
  const isRun = ({ functions }: (typeof result)[number]): boolean =>
    functions.some(({ ranges: [whole] }) => whole !== undefined && whole.startOffset > 0 && whole.count > 0);
  return result
    .filter(({ url }) => url.startsWith('file:'))
    .map((script) => ({ script, file: relative(source, fileURLToPath(script.url)) }))
    .filter(
      ({ script, file }) =>
        !file.startsWith('..') && !vocabulary.includes(file.split('/')[0] ?? '') && isRun(script),
    )
    .map(({ file }) => file)
    .sort();
}
