import { describe, expect, it } from 'vitest';
import { readConntrackLine, type TrackedConnection } from '../../../../src/network/flows/conntrack.ts';
import { followConnection } from '../../../../src/network/flows/conntrack.ts';

function tracked(line: string): TrackedConnection {
  const found = readConntrackLine(line);
  if (found === undefined) throw new Error(line);
  return found;
}

/** Lines as `conntrack -L` has them, by node. */
type Kernels = Readonly<Record<string, readonly string[]>>;

async function follow(first: readonly [string, number, string, number], kernels: Kernels) {
  const asked: number[] = [];
  const [source, sourcePort, destination, destinationPort] = first;
  const seen = await followConnection({ source, sourcePort, destination, destinationPort }, (port) => {
    asked.push(port);
    return Promise.resolve(
      Object.entries(kernels).flatMap(([node, lines]) =>
        lines
          .map(tracked)
          .filter(({ original }) => original.sourcePort === port)
          .map((connection) => [node, connection] as const),
      ),
    );
  });
  return { asked, seen };
}

const translated =
  'tcp 6 119 TIME_WAIT src=10.244.0.39 dst=10.96.8.20 sport=59434 dport=80 src=10.244.2.77 dst=10.244.0.39 sport=8080 dport=59434 [ASSURED] mark=0 use=1';
const passed =
  'tcp 6 119 TIME_WAIT src=10.244.0.39 dst=10.244.2.77 sport=59434 dport=8080 src=10.244.2.77 dst=10.244.0.39 sport=8080 dport=59434 [ASSURED] mark=0 use=1';
/** Another one from the same port. */
const other =
  'tcp 6 119 TIME_WAIT src=10.244.0.40 dst=10.96.8.20 sport=59434 dport=80 src=10.244.1.7 dst=10.244.0.40 sport=8080 dport=59434 mark=0 use=1';

describe('a connection is followed', () => {
  it('from the node that translates it to that of its endpoint', async () => {
    const { asked, seen } = await follow(['10.244.0.39', 59434, '10.96.8.20', 80], {
      'node-2': [other],
      'node-3': [passed],
      'node-1': [other, translated],
    });
    const asSent = { source: '10.244.0.39:59434', destination: '10.244.2.77:8080' };
    expect(seen).toEqual([
      {
        node: 'node-1',
        received: { source: '10.244.0.39:59434', destination: '10.96.8.20:80' },
        sent: asSent,
      },
      { node: 'node-3', received: asSent, sent: asSent },
    ]);
    expect(asked).toEqual([59434]);
  });

  it('behind a node that masquerades, by its other port', async () => {
    const { asked, seen } = await follow(['192.0.2.9', 40000, '198.51.100.1', 80], {
      'node-1': [
        'tcp 6 60 SYN_SENT src=192.0.2.9 dst=198.51.100.1 sport=40000 dport=80 [UNREPLIED] src=10.244.2.77 dst=172.18.0.2 sport=8080 dport=51111 mark=0 use=1',
      ],
      'node-2': [
        'tcp 6 60 SYN_SENT src=172.18.0.2 dst=10.244.2.77 sport=51111 dport=8080 [UNREPLIED] src=10.244.2.77 dst=172.18.0.2 sport=8080 dport=51111 mark=0 use=1',
      ],
    });
    expect(seen.map(({ node, sent }) => [node, sent.source])).toEqual([
      ['node-1', '172.18.0.2:51111'],
      ['node-2', '172.18.0.2:51111'],
    ]);
    expect(asked).toEqual([40000, 51111]);
  });

  it('to nowhere, where no kernel knows it', async () => {
    expect((await follow(['10.0.0.1', 1, '10.0.0.2', 2], { a: [passed], b: [] })).seen).toEqual([]);
  });
});
