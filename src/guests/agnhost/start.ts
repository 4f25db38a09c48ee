/** Kubernetes' test image agnhost, as a program of ours (test/images/agnhost). */
import type { ContainerProgram, ProgramContainer } from '../../emulation/program.ts';
import { connect, etcHosts, inClusterClient, resolvConfEntries, withResolver } from './clients.ts';
import { AgnhostArguments, type AgnhostContainer, AgnhostRun, corednsProgram } from './context.ts';
import { guestbook } from './guestbook.ts';
import { netexec, networkTester } from './netexec.ts';
import { coredns, entrypointTester, grpcHealthChecking, mountTest } from './probes.ts';
import {
  liveness,
  logsGenerator,
  noSnatTest,
  pause,
  porter,
  portForwardTester,
  serveHostname,
  tcpReset,
  testWebserver,
} from './servers.ts';
import { conversionWebhook, webhook } from './webhook.ts';
import { errorMessage } from '../../objects/status.ts';

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
    ['dns-suffix', (run: AgnhostRun) => resolvConfEntries(run, 'search')],
    ['dns-server-list', (run: AgnhostRun) => resolvConfEntries(run, 'nameserver')],
  ] as const),
]);

const switches = ['tcp', 'udp', 'http', 'close', 'json-response'];

/**
 * Runs agnhost, or {@link corednsProgram}, in this process.
 *
 * @param argv the program, the subcommand of agnhost (`pause` by default), and the arguments.
 * @returns undefined for a subcommand that is to be run as a process of the container.
 */
export async function startAgnhost(
  argv: readonly string[],
  container: ProgramContainer,
): Promise<ContainerProgram | undefined> {
  const [program, name = 'pause'] = argv;
  const isCoredns = program === corednsProgram;
  const subcommand = isCoredns ? coredns : light.get(name);
  if (subcommand === undefined) return undefined;
  return await begin(subcommand, argv, argv.slice(isCoredns ? 1 : 2), withResolver(container));
}

/** Runs any subcommand. @throws {Error} for one that there is not. */
export async function runAgnhost(
  argv: readonly string[],
  container: AgnhostContainer,
): Promise<ContainerProgram> {
  const [, name = ''] = argv;
  const subcommand = light.get(name) ?? others.get(name);
  if (subcommand === undefined) {
    throw new Error(`Error: unknown command "${name}" for "app": the built-in agnhost has ${names()}`);
  }
  return await begin(subcommand, argv, argv.slice(2), container);
}

function names(): string {
  return [...light.keys(), ...others.keys()].join(', ');
}

async function begin(
  subcommand: Subcommand,
  argv: readonly string[],
  args: readonly string[],
  container: AgnhostContainer,
): Promise<ContainerProgram> {
  const run = new AgnhostRun(container, new AgnhostArguments(args, switches), argv);
  const fail = (error: unknown): void => {
    container.write('stderr', `${errorMessage(error)}\n`);
    run.end(1);
  };
  // Some resolve when they end, some as soon as they listen.
  const begun = subcommand(run).catch(fail);
  await Promise.race([begun, run.ended]);
  return run.asProgram();
}
