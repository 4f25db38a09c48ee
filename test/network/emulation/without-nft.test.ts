import { execFileSync, spawnSync } from 'node:child_process';
import { expect, it } from 'vitest';
import { textAt } from '../../../src/objects/read.ts';
import { missingFor } from '../support/gate.ts';

const missing = missingFor('user');

it.skipIf(missing !== '')(
  `Services of \`up\` are forwarded in userspace where there is no nft${missing && ` (missing: ${missing})`}`,
  () => {
    const nft = execFileSync('sh', ['-c', 'PATH="$PATH:/usr/sbin:/sbin" command -v nft'], {
      encoding: 'utf8',
    }).trim();
    const user = process.getuid?.() === 0 ? [] : ['--user', '--map-root-user'];
    // What is no program in this mount namespace cannot be found either.
    const hide = 'mount --bind /dev/null "$1" && shift && exec "$@"';
    const program = [process.execPath, 'test/network/emulation/without-nft.ts'];
    const { status, stdout, stderr } = spawnSync(
      'unshare',
      [...user, '--mount', 'sh', '-c', hide, 'sh', nft, ...program],
      { encoding: 'utf8', timeout: 100_000 },
    );
    expect(status, stderr).toBe(0);
    const report: unknown = JSON.parse(stdout);
    expect(report).toMatchObject({ answering: 2, outside: true });
    expect(textAt(report, 'refused')).toMatch(/refused|Failed to connect/i);
  },
);
