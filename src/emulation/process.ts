/** The process inside the namespaces that `sandbox.ts` makes. */
import { flushCompileCache } from 'node:module';
import { returnFreedMemory } from '../host/freed-memory.ts';
import { createLog } from '../telemetry/log.ts';
import { type AnswersMessage, answerCalls, type FirstMessage } from './calls.ts';
import type { Inside } from './inside.ts';
import type { ProgramImages } from './program.ts';
import { errorMessage } from '../objects/status.ts';

/** Why native code cannot be called here: its package is not installed, or is for another libc; undefined: it can. */
async function obstacle(): Promise<string | undefined> {
  try {
    await import('./namespaces.ts');
    return undefined;
  } catch (error) {
    const [first = ''] = errorMessage(error).split('\n');
    return `the package koffi cannot be loaded: install it with its optional dependencies, by npm ci (${first})`;
  }
}

/** Runs the cluster network in this process, as `up` says over the channel between the two. */
export async function serveNetwork(images: ProgramImages): Promise<void> {
  let inside: Inside | undefined;
  answerCalls(async (call) => {
    if (call.call === 'start') {
      const { Inside } = await import('./inside.ts');
      const { logLevel: level, logFormat: format } = call.config;
      const log = createLog({ level, format });
      const started = await Inside.start(call.config, images, log);
      returnFreedMemory(log);
      inside = started.inside;
      return { handle: started.listener };
    }
    if (inside === undefined) throw new Error('the cluster network is not started yet');
    const answer = await inside.answer(call);
    // This process is killed, and only one that exits writes the compile cache.
    if (call.call === 'complete') flushCompileCache();
    return answer;
  });
  // `up` waits for this before it decides to have a network: the rest is loaded meanwhile.
  const found = await obstacle();
  process.send?.({ obstacle: found ?? '' } satisfies FirstMessage);
  if (found !== undefined) return;
  const { reportAnswers } = await import('./pod-server.ts');
  reportAnswers((answers) => void process.send?.({ answers } satisfies AnswersMessage));
  await import('./inside.ts');
}
