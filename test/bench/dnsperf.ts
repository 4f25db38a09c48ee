import { execFile } from 'node:child_process';
import { rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

/** How a DNS server is asked. */
export interface Asking {
  readonly port: number;
  /** Of Services in the namespace `shop`, whose A records are asked for in turn. */
  readonly names: readonly string[];
  readonly seconds: number;
  readonly transport?: 'udp' | 'tcp';
  readonly edns?: boolean;
  /** Sockets that ask. Default: 16. */
  readonly clients?: number;
}

/** What came of it. */
export interface Answers {
  readonly count: number;
  readonly perSecond: number;
}

/**
 * Asks a DNS server of 127.0.0.1 by the program dnsperf, 256 queries at a time.
 *
 * @throws {Error} where an answer is not NOERROR, or more than one in a hundred is lost.
 */
export async function askByDnsperf(asking: Asking): Promise<Answers> {
  const { port, names, seconds, transport = 'udp', edns = false, clients = 16 } = asking;
  const file = join(tmpdir(), `servicenet-dnsperf-${process.pid}-${port}`);
  await writeFile(file, names.map((name) => `${name}.shop.svc.cluster.local A\n`).join(''));
  try {
    const { stdout } = await promisify(execFile)('dnsperf', [
      ...['-s', '127.0.0.1', '-p', String(port), '-m', transport, '-d', file, ...(edns ? ['-e'] : [])],
      ...['-c', String(clients), '-q', '256', '-l', String(seconds), '-t', '2'],
    ]);
    const number = (label: string): number =>
      Number(new RegExp(`${label}:\\s+([\\d.]+)`).exec(stdout)?.[1] ?? 0);
    const count = number('Queries completed');
    const good = Number(/NOERROR (\d+)/.exec(stdout)?.[1] ?? 0);
    if (good !== count || count === 0 || number('Queries lost') > count / 100) throw new Error(stdout);
    return { count, perSecond: number('Queries per second') };
  } finally {
    await rm(file);
  }
}
