import { readConntrackLine, type Tuple } from '../../network/flows/conntrack-line.ts';
import { followConnection } from '../../network/flows/follow.ts';
import type { SeenConnection } from '../../network/path/way.ts';
import type { FlowNode } from './flow-collector.ts';

/**
 * What the kernels of nodes know of a connection of TCP, in the order of its way: each remembers one that has passed for two
 * minutes, also without an answer.
 *
 * @throws {Error} where conntrack cannot be run.
 */
export async function seenOnNodes(
  nodes: readonly Pick<FlowNode, 'name' | 'host'>[],
  connection: Tuple,
): Promise<readonly SeenConnection[]> {
  const family = connection.source.includes(':') ? 'ipv6' : 'ipv4';
  return await followConnection(connection, async (sourcePort) => {
    const args = ['-L', '-f', family, '-p', 'tcp', '--orig-port-src', String(sourcePort)];
    const found = await Promise.all(
      nodes.map(async ({ name, host }) => {
        const { stdout } = await host.exec('conntrack', args);
        return stdout.split('\n').flatMap((line) => {
          const tracked = readConntrackLine(line);
          return tracked === undefined ? [] : [[name, tracked] as const];
        });
      }),
    );
    return found.flat();
  });
}
