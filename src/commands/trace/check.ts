import { homedir } from 'node:os';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import type { RunWhere } from '../../config/run.ts';
import { askControl, controlSocketPath } from '../../emulation/control-socket.ts';
import { run } from '../../host/run.ts';
import { comparePacket, type PacketOutcome, type PacketVerdict } from '../../network/path/packet.ts';
import type { Trace, TraceDestination, TraceSource } from '../../network/path/trace.ts';

/** A plan beside the result of a real connection. */
export interface CheckedPacket extends PacketVerdict {
  /** That the connection took. */
  readonly milliseconds: number;
}

/** Milliseconds that a connection may take. */
const timeoutMs = 2000;

/** Prints the result of a connection to the address and port that follow. */
const program = `
const [address, port] = process.argv.slice(1);
const socket = require('node:net').connect({ host: address, port: Number(port) });
const end = (outcome) => { process.stdout.write(outcome); socket.destroy(); process.exit(0); };
socket.once('connect', () => end('connected'));
socket.once('error', ({ code }) => end(code === 'ETIMEDOUT' ? 'dropped' : 'refused'));
setTimeout(() => end('dropped'), ${timeoutMs});
`;

/**
 * Opens connections from a place of the cluster network of an `up`, as its source would.
 *
 * @throws {Error} where there is no such network, or the source is not in it.
 */
export class PacketChecker {
  readonly #socket: string;

  /** @param kubeconfigPath that `up` has written; default that of `servicenet run`. */
  constructor(kubeconfigPath: string | undefined) {
    const named = kubeconfigPath ?? process.env['KUBECONFIG']?.split(':')[0] ?? '';
    this.#socket = controlSocketPath(named === '' ? join(homedir(), '.servicenet', 'kubeconfig') : named);
  }

  /** Opens the connection of a plan; where that does not come about against the plan, also to the endpoints themselves. */
  async check(source: TraceSource, destination: TraceDestination, plan: Trace): Promise<CheckedPacket> {
    const place = await askControl(this.#socket, whereOf(source));
    const open = async (address: string, port: number): Promise<PacketOutcome> => {
      const words = [...place.words, process.execPath, '-e', program, address, String(port)];
      const { stdout, stderr } = await run(words[0] ?? '', words.slice(1));
      if (stdout === 'connected' || stdout === 'refused' || stdout === 'dropped') return stdout;
      throw new Error(`--check: no connection was tried: ${stderr.trim()}`);
    };
    try {
      const begun = performance.now();
      const outcome = await open(destination.address, destination.port);
      const milliseconds = Math.round(performance.now() - begun);
      const isLost = plan.reachable === true && outcome !== 'connected';
      const others = plan.endpoints.filter(({ address }) => address !== destination.address);
      const direct = isLost ? await Promise.all(others.map(({ address, port }) => open(address, port))) : [];
      return { ...comparePacket(plan, outcome, direct), milliseconds };
    } finally {
      place.end();
    }
  }
}

function whereOf(source: TraceSource): RunWhere {
  switch (source.kind) {
    case 'pod': {
      const { namespace = '', name = '' } = source.pod.metadata;
      return { kind: 'pod', namespace, name };
    }
    case 'node':
      return { kind: 'node', name: source.node.metadata.name ?? '' };
    case 'outside':
      return { kind: 'outside' };
  }
}
