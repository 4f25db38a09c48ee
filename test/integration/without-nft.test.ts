import { spawnSync } from 'node:child_process';
import { expect, it } from 'vitest';
import { textAt } from '../../src/objects/read.ts';
import { missingProgram } from '../network/support/gate.ts';

const isRoot = process.getuid?.() === 0;
const namespaces = isRoot ? ['unshare', '--mount'] : ['unshare', '--user', '--map-root-user', '--mount'];

/** Not nft: that is what this is about. */
function missing(): string {
  if (process.platform !== 'linux') return 'Linux';
  const absent = [
    missingProgram('unshare', 'util-linux'),
    missingProgram('ip', 'iproute2'),
    missingProgram('curl', 'curl'),
  ].filter((what) => what !== '');
  if (absent.length > 0) return absent.join(', ');
  const tried = spawnSync('unshare', [...namespaces.slice(1), '--net', '--pid', '--fork', 'true'], {
    encoding: 'utf8',
  });
  return tried.status === 0 ? '' : `namespaces (${tried.stderr.trim()})`;
}

const lacks = missing();
/** What is no program in this mount namespace cannot be found either. */
const hide = `nft="$(PATH="$PATH:/usr/sbin:/sbin" command -v nft)" && mount --bind /dev/null "$nft"; exec "$@"`;

it.skipIf(lacks !== '')(
  `Services of \`up\` are forwarded in userspace where there is no nft${lacks && ` (missing: ${lacks})`}`,
  () => {
    const [unshare = '', ...flags] = namespaces;
    const { status, stdout, stderr } = spawnSync(
      unshare,
      [...flags, 'sh', '-c', hide, 'sh', process.execPath, 'test/support/without-nft.ts'],
      { encoding: 'utf8', timeout: 100_000 },
    );
    expect(status, stderr).toBe(0);
    const report: unknown = JSON.parse(stdout);
    expect(report).toMatchObject({ answering: 2, outside: true });
    expect(textAt(report, 'refused')).toMatch(/refused|Failed to connect/i);
  },
);
