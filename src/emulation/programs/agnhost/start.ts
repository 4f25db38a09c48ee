/** Kubernetes' test image agnhost, as a program of ours (test/images/agnhost). */
import type { ContainerExit } from '../../../controllers/kubelet/container-runtime.ts';
import type { ContainerProgram } from '../program.ts';
import { coredns } from './probes.ts';
import { connect, etcHosts, inClusterClient, resolvConfWords } from './clients.ts';
import { entrypointTester, mountTest } from './probes.ts';
import { AgnhostArguments, type AgnhostPlace, AgnhostRun, corednsProgram } from './context.ts';
import { guestbook } from './guestbook.ts';
import { grpcHealthChecking } from './probes.ts';
import { netexec } from './netexec.ts';
import { networkTester } from './netexec.ts';
import {
  liveness,
  logsGenerator,
  noSnatTest,
  pause,
  porter,
  serveHostname,
  tcpReset,
  testWebserver,
} from './servers.ts';
import { portForwardTester } from './servers.ts';
import { conversionWebhook, webhook } from './webhook.ts';
import { errorMessage } from '../../../objects/status.ts';

type Subcommand = (run: AgnhostRun) => Promise<void>;

/** Those that need only the network of their container, and files of its volumes. */
const light: ReadonlyMap<string, Subcommand> = new Map<string, Subcommand>([
  ...([
    ['netexec', netexec],
    ['serve-hostname', serveHostname],
    ['pause', pause],
    ['porter', porter],
    ['liveness', liveness],
    ['test-webserver', testWebserver],
    ['logs-generator', logsGenerator],
    ['webhook', webhook],
    ['crd-conversion-webhook', conversionWebhook],
    ['tcp-reset', tcpReset],
    ['no-snat-test', noSnatTest],
    ['net', networkTester],
    ['grpc-health-checking', grpcHealthChecking],
    ['entrypoint-tester', entrypointTester],
    ['guestbook', guestbook],
    ['port-forward-tester', portForwardTester],
  ] as const),
]);

/** Those that resolve names, or see the files of their container, too. */
const others: ReadonlyMap<string, Subcommand> = new Map<string, Subcommand>([
  ...([
    ['connect', connect],
    ['inclusterclient', inClusterClient],
    ['etc-hosts', etcHosts],
    ['mounttest', mountTest],
    ['dns-suffix', (run: AgnhostRun) => resolvConfWords(run, 'search')],
    ['dns-server-list', (run: AgnhostRun) => resolvConfWords(run, 'nameserver')],
  ] as const),
]);

const switches = ['tcp', 'udp', 'http', 'close', 'json-response'];

/**
 * Runs agnhost, or {@link corednsProgram}, in this process; undefined: the subcommand is to be run as a process.
 *
 * @param words the program, the subcommand of agnhost, and the arguments.
 */
export async function startAgnhost(
  words: readonly string[],
  place: AgnhostPlace,
): Promise<ContainerProgram | undefined> {
  if (words[0] === corednsProgram) return await begin(coredns, words, words.slice(1), place);
  const subcommand = light.get(words[1] ?? '');
  return subcommand === undefined ? undefined : await begin(subcommand, words, words.slice(2), place);
}

/** Runs any subcommand. @throws {Error} for one that there is not. */
export async function runAgnhost(words: readonly string[], place: AgnhostPlace): Promise<ContainerProgram> {
  const [, name = ''] = words;
  const subcommand = light.get(name) ?? others.get(name);
  if (subcommand === undefined) {
    throw new Error(`Error: unknown command "${name}" for "app": the built-in agnhost has ${names()}`);
  }
  return await begin(subcommand, words, words.slice(2), place);
}

function names(): string {
  return [...light.keys(), ...others.keys()].join(', ');
}

async function begin(
  subcommand: Subcommand,
  words: readonly string[],
  args: readonly string[],
  place: AgnhostPlace,
): Promise<ContainerProgram> {
  const run = new AgnhostRun(place, new AgnhostArguments(args, switches), words);
  const ended = run.ended.then((exitCode): ContainerExit => ({ exitCode }));
  const fail = (error: unknown): void => {
    place.write('stderr', `${errorMessage(error)}\n`);
    run.end(1);
  };
  // Some resolve when they end, some as soon as they listen.
  const begun = subcommand(run).catch(fail);
  await Promise.race([begun, run.ended]);
  return {
    ended,
    signal: (name) => {
      if (name === 'SIGKILL') run.end(137);
      else run.onTerm();
    },
  };
}
