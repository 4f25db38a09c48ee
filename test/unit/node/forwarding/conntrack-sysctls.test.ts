import { pino } from 'pino';
import { expect, it } from 'vitest';
import type { KernelParameters } from '../../../../src/host/host.ts';
import { type ConntrackLimits, setSysctls } from '../../../../src/node/forwarding/conntrack.ts';

/** kube-proxy's defaults. */
const defaults: ConntrackLimits = {
  maxPerCore: 32_768,
  min: 131_072,
  tcpTimeoutEstablishedSeconds: 86_400,
  tcpTimeoutCloseWaitSeconds: 3600,
  tcpBeLiberal: false,
  udpTimeoutSeconds: 0,
  udpTimeoutStreamSeconds: 0,
};

/** A kernel with these parameters, by their names after `net/netfilter/nf_conntrack_`. */
class Kernel implements KernelParameters {
  readonly values: Map<string, string>;
  readonly written: string[] = [];
  readonly #readOnly: ReadonlySet<string>;

  constructor(values: Record<string, string>, ...readOnly: readonly string[]) {
    this.values = new Map(Object.entries(values));
    this.#readOnly = new Set(readOnly);
  }

  get(name: string): Promise<string | undefined> {
    return Promise.resolve(this.values.get(short(name)));
  }

  set(name: string, value: string): Promise<void> {
    if (this.#readOnly.has(short(name)))
      return Promise.reject(Object.assign(new Error('EROFS'), { code: 'EROFS' }));
    this.written.push(`${short(name)}=${value}`);
    return Promise.resolve();
  }
}

function short(name: string): string {
  return name.replace('net/netfilter/nf_conntrack_', '');
}

const fresh = {
  max: '65536',
  buckets: '65536',
  tcp_timeout_established: '432000',
  tcp_timeout_close_wait: '60',
};

async function set(kernel: Kernel, limits: ConntrackLimits, cores: number): Promise<readonly string[]> {
  const warned: string[] = [];
  const log = pino({ level: 'warn' }, { write: (line: string) => warned.push(line) });
  await setSysctls({ sysctl: kernel }, limits, cores, log);
  return warned;
}

it.each([
  ['by the number of cores', defaults, 8, ['max=262144']],
  ['but the least at least', defaults, 2, ['max=131072']],
  ['and not more than a million by the cores', defaults, 128, ['max=1048576', 'buckets=262144']],
  ['as it is with 0 for each core', { ...defaults, maxPerCore: 0 }, 8, []],
])('sets how many connections are remembered %s', async (_, limits, cores, expected) => {
  const kernel = new Kernel({ ...fresh, tcp_timeout_established: '86400', tcp_timeout_close_wait: '3600' });
  expect(await set(kernel, limits, cores)).toEqual([]);
  expect(kernel.written).toEqual(expected);
});

it('sets timeouts, those for UDP and the liberal mode only where they are asked for', async () => {
  const kernel = new Kernel({ ...fresh, max: '131072' });
  await set(kernel, defaults, 2);
  expect(kernel.written).toEqual(['tcp_timeout_established=86400', 'tcp_timeout_close_wait=3600']);
  const asked = new Kernel({ ...fresh, max: '131072' });
  await set(
    asked,
    {
      ...defaults,
      tcpTimeoutEstablishedSeconds: 0,
      tcpTimeoutCloseWaitSeconds: 0,
      tcpBeLiberal: true,
      udpTimeoutSeconds: 40,
      udpTimeoutStreamSeconds: 200,
    },
    2,
  );
  expect(asked.written).toEqual(['tcp_be_liberal=1', 'udp_timeout=40', 'udp_timeout_stream=200']);
});

it('names what it cannot set, and sets the others', async () => {
  const kernel = new Kernel(fresh, 'max');
  const warned = await set(kernel, defaults, 2);
  expect(warned).toHaveLength(1);
  expect(warned[0]).toContain('net/netfilter/nf_conntrack_max');
  // Every node in a container says it at each start.
  expect(warned[0]).not.toContain('stack');
  expect(kernel.written).toEqual(['tcp_timeout_established=86400', 'tcp_timeout_close_wait=3600']);
});
