import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ContainerExit } from '../../controllers/kubelet/container-runtime.ts';
import type { Container } from '../../objects/types/core.generated.ts';
import type { ContainerLog } from './container-log.ts';

/** Bytes of `/dev/termination-log`, and bytes and lines of the end of the log that stands in for it. */
const maxMessageBytes = 4096;
const maxLogMessageBytes = 2048;
const maxLogMessageLines = 80;

/**
 * The message of a container that has ended: what it wrote into `/dev/termination-log`, or the end of its log
 * (`terminationMessagePolicy`).
 *
 * @param folder of the Pod.
 */
export async function terminationMessage(
  folder: string,
  { name, terminationMessagePolicy }: Container,
  { exitCode, message }: ContainerExit,
  log: ContainerLog,
): Promise<{ message?: string }> {
  if (message !== undefined) return {};
  try {
    const text = await readFile(join(folder, 'containers', name, 'termination-log'), 'utf8');
    if (text !== '') return { message: text.slice(-maxMessageBytes) };
  } catch {
    // It has no process, or its Pod is deleted.
  }
  if (terminationMessagePolicy !== 'FallbackToLogsOnError' || exitCode === 0) return {};
  const lines: string[] = [];
  for await (const some of log.lines({ tailLines: maxLogMessageLines })) {
    for (const { text } of some) lines.push(`${text.toString()}\n`);
  }
  const text = lines.join('').slice(-maxLogMessageBytes);
  return text === '' ? {} : { message: text };
}
