import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type MockInstance, vi } from 'vitest';
import { NetworkSandbox } from '../../../src/emulation/network-sandbox.ts';
import { until } from './pod-network.ts';
import { insideOf } from './up-process.ts';

/** The turns of the event loop of the process of a cluster network that begins after this does, in this process. */
export class TurnsInside {
  readonly #folder = mkdtempSync(join(tmpdir(), 'servicenet-turns-'));
  readonly #file = join(this.#folder, 'turns');
  readonly #opening: MockInstance<typeof NetworkSandbox.open>;
  #asked = 0;

  constructor() {
    const open = NetworkSandbox.open.bind(NetworkSandbox);
    const preload = new URL('turns-preload.ts', import.meta.url).href;
    this.#opening = vi.spyOn(NetworkSandbox, 'open').mockImplementation((options) =>
      open({
        ...options,
        nodeOptions: [...options.nodeOptions, '--import', preload],
        environment: { ...options.environment, TURNS_FILE: this.#file },
      }),
    );
  }

  /** Milliseconds of CPU of the longest turn since the last call. */
  async longest(): Promise<number> {
    const answer = String(++this.#asked);
    process.kill(insideOf(process), 'SIGUSR2');
    const [, longest] = await until(
      () => Promise.resolve(readFileSync(this.#file, 'utf8').split(' ')),
      ([number]) => number === answer,
    );
    return Number(longest);
  }

  close(): void {
    this.#opening.mockRestore();
    rmSync(this.#folder, { recursive: true });
  }
}
