import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';

/** The program of servicenet, from source. */
export const main = join(import.meta.dirname, '../../src/main.js');

export interface UpOptions {
  /** Its HOME. */
  readonly home: string;
  /** Where it writes its kubeconfig. */
  readonly kubeconfig: string;
  readonly nodes: number;
  /** Programs of this machine by the images for which they stand. */
  readonly images: Readonly<Record<string, string>>;
  /** Further flags. */
  readonly flags: readonly string[];
}

/**
 * Starts `up` with the cluster network and containers that are processes: for suites of other projects, which
 * take minutes. Ctrl-C ends it; this process stays to clean up.
 *
 * @returns what stops it, when its network is ready.
 * @throws {Error} where it ends before.
 */
export async function startUp({
  home,
  kubeconfig,
  nodes,
  images,
  flags,
}: UpOptions): Promise<() => Promise<void>> {
  const up = spawn(
    process.execPath,
    [
      ...[
        main,
        'up',
        '--port',
        '0',
        '--nodes',
        String(nodes),
        '--network',
        'on',
        '--containers',
        'processes',
      ],
      ...['--write-kubeconfig', kubeconfig, ...flags],
      ...Object.entries(images).flatMap(([image, path]) => ['--image', `${image}=${path}`]),
    ],
    { env: { ...process.env, HOME: home, TERM: 'dumb' }, stdio: ['ignore', 'pipe', 'inherit'] },
  );
  process.on('SIGINT', () => undefined);
  let printed = '';
  await new Promise<void>((resolve, reject) => {
    up.stdout.on('data', (chunk) => {
      printed += String(chunk);
      if (printed.includes('cluster network is ready')) resolve();
    });
    up.once('exit', () => reject(new Error(`up has ended: ${printed}`)));
  });
  return async () => {
    up.kill('SIGTERM');
    if (up.exitCode === null) await once(up, 'exit');
  };
}
