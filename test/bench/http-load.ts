import { readFileSync } from 'node:fs';
import { Pool } from 'undici';

const connections = 32;

/** What requests over {@link load}'s connections came to. */
export interface Load {
  readonly perSecond: number;
  /** Milliseconds. */
  readonly p50: number;
  readonly p99: number;
}

/** Asks for `/` of a host of 127.0.0.1 over 32 kept connections; answers are 1 KiB. @throws where one is another. */
export async function load(port: number, host: string, seconds: number): Promise<Load> {
  const pool = new Pool(`http://127.0.0.1:${port}`, { connections, pipelining: 1 });
  const times: number[] = [];
  const began = performance.now();
  const end = began + seconds * 1000;
  await Promise.all(
    Array.from({ length: connections }, async () => {
      while (performance.now() < end) {
        const sent = performance.now();
        const { statusCode, body } = await pool.request({ path: '/', method: 'GET', headers: { host } });
        const text = await body.arrayBuffer();
        if (statusCode !== 200 || text.byteLength !== 1024) throw new Error(`status ${statusCode}`);
        times.push(performance.now() - sent);
      }
    }),
  );
  const elapsed = (performance.now() - began) / 1000;
  await pool.close();
  times.sort((a, b) => a - b);
  const at = (share: number): number => times[Math.floor(times.length * share)] ?? 0;
  return { perSecond: times.length / elapsed, p50: at(0.5), p99: at(0.99) };
}

export function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
}

/** `VmRSS` of proc_pid_status. */
export function residentMiB(pid: number | undefined): number {
  const [, kB = '0'] = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid ?? 0}/status`, 'utf8')) ?? [];
  return Number(kB) / 1024;
}
