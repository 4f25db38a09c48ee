/**
 * The agent of a node as a process that can be killed. Its argument is {@link AgentProcessOptions} as JSON. Before each
 * program that it runs in the node's namespace, it prints a line.
 */
import { pino } from 'pino';
import { systemClock } from '../../../src/client/clock.ts';
import { createTransport } from '../../../src/client/connect.ts';
import { InformerFactory } from '../../../src/client/informers/shared-informer.ts';
import type { Host } from '../../../src/host/host.ts';
import { localHost } from '../../../src/host/local-host.ts';
import { run } from '../../../src/host/local-host.ts';
import { forwardingSelectors, NodeAgent } from '../../../src/node/forwarding/agent.ts';
import { isRecord } from '../../../src/objects/json.ts';
import { Metrics } from '../../../src/telemetry/metrics.ts';
import { agentOptions, forwardingOptions } from './objects.ts';
import { tellingTransactions } from './transactions.ts';

export interface AgentProcessOptions {
  readonly url: string;
  readonly ca: string;
  readonly token: string;
  readonly nodeName: string;
  /** The words that lead into the node's namespace. */
  readonly enter: readonly string[];
}

const { url, ca, token, nodeName, enter } = read(process.argv[2] ?? '');
const inside: Host = {
  ...localHost,
  exec: (program, args, options) => {
    process.stdout.write(`${program}\n`);
    const [first = program, ...rest] = [...enter, program, ...args];
    return run(first, rest, options);
  },
};
const host = tellingTransactions(inside, () => process.stdout.write('transaction\n'));
const common = {
  clock: systemClock,
  random: Math.random,
  log: pino({ level: 'error' }, pino.destination(2)),
};
const transport = await createTransport({ kind: 'endpoint', url, ca, token });
const informers = new InformerFactory({ ...common, transport, labelSelectors: forwardingSelectors });
const { serviceCIDRs: _, ...forwarding } = forwardingOptions;
const agent = new NodeAgent({
  context: { ...common, informers, events: { event: () => undefined }, metrics: new Metrics() },
  ...{ host, nodeName, forwarding: { ...forwarding, families: ['IPv4'] }, ...agentOptions },
});
const never = new AbortController().signal;
const running = agent.run(never);
informers.start(never);
await running;

/** What the test wrote. */
function read(text: string): AgentProcessOptions {
  const options: unknown = JSON.parse(text);
  const known = isRecord(options) ? options : {};
  const texts = (value: unknown): string[] => (Array.isArray(value) ? value.map(String) : []);
  return {
    url: String(known['url']),
    ca: String(known['ca']),
    token: String(known['token']),
    nodeName: String(known['nodeName']),
    enter: texts(known['enter']),
  };
}
