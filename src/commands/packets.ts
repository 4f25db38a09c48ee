import { askControl, askSeen } from '../emulation/control-socket.ts';
import { isRecord, numberAt, textAt } from '../objects/json.ts';
import { run } from '../host/local-host.ts';
import type { PacketOutcome } from '../network/path/packet.ts';
import type { PacketPlace, PlaceOfPackets } from '../view/trace-connection.ts';

/** A connection may take so long. */
const timeoutMs = 2000;

/** Prints the result of a connection to the address and port that follow, and where it came from. */
const program = `
const [address, port] = process.argv.slice(1);
const socket = require('node:net').connect({ host: address, port: Number(port) });
const end = (outcome) => {
  const from = socket.address() ?? {};
  process.stdout.write(JSON.stringify({ outcome, source: from.address, sourcePort: from.port }));
  socket.destroy();
  process.exit(0);
};
socket.once('connect', () => end('connected'));
socket.once('error', ({ code }) => end(code === 'ETIMEDOUT' ? 'dropped' : 'refused'));
setTimeout(() => end('dropped'), ${timeoutMs});
`;

const outcomes: readonly PacketOutcome[] = ['connected', 'refused', 'dropped'];

/**
 * Enters a place of the cluster network of an `up`, to open connections as its programs would.
 *
 * @param socket of the `up` ({@link controlSocketPath}).
 * @throws {Error} where there is no such network, or no such place in it.
 */
export async function enterForPackets(socket: string, where: PacketPlace): Promise<PlaceOfPackets> {
  const place = await askControl(socket, where);
  return {
    open: async (address, port) => {
      const argv = [...place.argv, process.execPath, '-e', program, address, String(port)];
      const { stdout, stderr } = await run(argv[0] ?? '', argv.slice(1));
      const said: unknown = stdout.startsWith('{') ? JSON.parse(stdout) : undefined;
      const outcome = outcomes.find((each) => isRecord(said) && each === said['outcome']);
      if (outcome === undefined) throw new Error(`--check: no connection was tried: ${stderr.trim()}`);
      const [source, sourcePort] = [textAt(said, 'source'), numberAt(said, 'sourcePort')];
      // The kernel forgets a connection that was refused at once.
      if (outcome === 'refused' || source === '') return { outcome };
      const seen = await askSeen(socket, { source, sourcePort, destination: address, destinationPort: port });
      return seen === undefined ? { outcome } : { outcome, seen };
    },
    end: () => place.end(),
  };
}
