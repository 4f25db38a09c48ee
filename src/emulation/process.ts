/** The process inside the namespaces that `network-sandbox.ts` makes. */
import { flushCompileCache } from 'node:module';
import { createServer } from 'node:net';
import { returnUnusedMemory } from '../host/unused-memory.ts';
import { listenPrivately, type PrivateSocket } from '../host/sockets.ts';
import { createLog } from '../telemetry/log.ts';
import { type ResponsesMessage, answerCalls, type FirstMessage, type FlowsMessage } from './protocol.ts';
import type { NetworkProcess } from './network-process.ts';
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
  // Containers inherit it, and folders on the way to their mounts: container runtimes have this one.
  process.umask(0o022);
  let network: NetworkProcess | undefined;
  let ownWay: PrivateSocket | undefined;
  answerCalls(async (call) => {
    if (call.call === 'own-way') {
      // Accepts nothing but the try of `listenPrivately`: the API server does, once it has the descriptor.
      const server = createServer((socket) => socket.destroy());
      ownWay = await listenPrivately(server);
      return ownWay === undefined ? {} : { handle: server };
    }
    if (call.call === 'start') {
      const { NetworkProcess } = await import('./network-process.ts');
      const { logLevel: level, logFormat: format } = call.config;
      const log = createLog({ level, format });
      const started = await NetworkProcess.start(
        call.config,
        ownWay?.path,
        images,
        log,
        (responses) => void process.send?.({ responses } satisfies ResponsesMessage),
        (viewer, news) => void process.send?.({ viewer, news } satisfies FlowsMessage),
      );
      returnUnusedMemory(log);
      network = started.network;
      return { handle: started.listener };
    }
    if (network === undefined) throw new Error('the cluster network is not started yet');
    const answer = await network.answer(call);
    // This process is killed, and only one that exits writes the compile cache.
    if (call.call === 'complete') flushCompileCache();
    return answer;
  });
  // `up` waits for this before it decides to have a network: the rest is loaded meanwhile.
  const found = await obstacle();
  if (found !== undefined) {
    process.send?.({ obstacle: found, commandsObstacle: '' } satisfies FirstMessage);
    return;
  }
  const { commandsObstacle } = await import('./containers/container-programs.ts');
  const noCommands = await commandsObstacle('/run/probe');
  process.send?.({ obstacle: '', commandsObstacle: noCommands } satisfies FirstMessage);
  await import('./network-process.ts');
}
