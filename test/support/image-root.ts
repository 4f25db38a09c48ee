import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, realpathSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { Builder, type Stage, stagesOf } from './dockerfile.ts';

/**
 * A minimal Debian 12 with packages in `root`, which must not be there yet. Needs mmdebstrap and root.
 *
 * @param cache a folder in which it is kept for the next time.
 */
export function debianRoot(root: string, packages: readonly string[], cache?: string): void {
  const include = packages.join(',');
  const debian = (target: string): void => {
    execFileSync('mmdebstrap', [
      '--quiet',
      '--variant=essential',
      `--include=${include}`,
      'bookworm',
      target,
    ]);
  };
  if (cache === undefined) {
    debian(root);
    return;
  }
  const kept = join(cache, `debian-${createHash('sha256').update(include).digest('hex').slice(0, 12)}.tar`);
  if (!existsSync(kept)) {
    mkdirSync(cache, { recursive: true });
    debian(`${kept}.new.tar`);
    renameSync(`${kept}.new.tar`, kept);
  }
  mkdirSync(root);
  // Devices are the container runtime's business.
  execFileSync('tar', ['--directory', root, '--exclude=./dev/*', '--extract', '--file', kept]);
}

/** The last stage of the Dockerfile, whose words an image has: `ENTRYPOINT`, `CMD`. @throws {Error} where it has none. */
export function imageStage(): Stage {
  const last = stagesOf('Dockerfile').at(-1);
  if (last === undefined) throw new Error('the Dockerfile has no stage');
  return last;
}

/**
 * The files of the image that the Dockerfile makes, in `root`, on Debian's packages in the place of `node:24-slim`, which
 * is Debian 12 with Node.js.
 *
 * @param directory where its stages are built.
 * @param cache as of {@link debianRoot}.
 */
export function buildImageRoot(directory: string, root: string, cache?: string): void {
  // Node.js needs libstdc++.
  debianRoot(root, [...packagesOf(imageStage()), 'libstdc++6'], cache);
  const builder = new Builder(directory);
  const app =
    stagesOf('Dockerfile')
      .map((stage) => builder.build(stage))
      .at(-1) ?? '';
  cpSync(join(app, 'app'), join(root, 'app'), { recursive: true, verbatimSymlinks: true });
  cpSync(realpathSync(process.execPath), join(root, 'usr/local/bin/node'));
}

/** What a stage installs of Debian's packages. */
function packagesOf({ instructions }: Stage): string[] {
  const line = instructions.map(({ text }) => text).find((text) => text.includes('apt-get install'));
  const [, names = ''] = /apt-get install ([^&]*)/.exec(line ?? '') ?? [];
  return names.split(' ').filter((name) => name !== '' && !name.startsWith('-'));
}
