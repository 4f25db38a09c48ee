/** The process inside the namespaces that `sandbox.ts` makes. */
import { createLog } from '../telemetry/log.ts';
import { answerCalls } from './calls.ts';
import { Inside } from './inside.ts';

let inside: Inside | undefined;

answerCalls(async (call) => {
  if (call.call === 'start') {
    const { logLevel: level, logFormat: format } = call.config;
    const started = await Inside.start(call.config, createLog({ level, format }));
    inside = started.inside;
    return { handle: started.listener };
  }
  if (inside === undefined) throw new Error('the cluster network is not started yet');
  return await inside.answer(call);
});
