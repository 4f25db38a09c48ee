import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { asUser, makers, missingProgram } from '../support/gate.ts';

const program = new URL('../support/sandbox-program.ts', import.meta.url).pathname;

const script = `hostname; cat /etc/hosts /etc/new/volume/file; echo $$
touch /etc-own /etc/servicenet-own /etc/new/volume/changed 2>&1 | grep -c 'Read-only'
touch /tmp/own /run/own /dev/shm/own /data/own && ls /data
for file in sys/kernel/core_pattern sysrq-trigger; do (: >>/proc/$file) 2>/dev/null || echo kept; done
mount -o remount,rw,bind /etc 2>/dev/null || echo kept
grep CapEff /proc/self/status; cat /proc/sys/kernel/shm_rmid_forced; exit 7`;

/** With what each lacks here. */
const ways = [
  ['bwrap', missingProgram('bwrap', 'bubblewrap')],
  ['unshare', ''],
] as const;

/** A shell with namespaces of its own and a tmpfs at /run, which runs a script. */
function inNamespaces(maker: string, setUp: string, ...words: readonly string[]) {
  const [first = '', ...rest] = [
    ...(maker === 'user' ? [...asUser, 'unshare', '--user', '--map-root-user'] : ['unshare']),
    ...['--net', '--mount', '--pid', '--mount-proc', '--fork', '--kill-child', 'sh', '-c'],
    ...[`mount -t tmpfs tmpfs /run && ${setUp}`, 'sh', process.execPath, program, ...words],
  ];
  const { status, stdout, stderr } = spawnSync(first, rest, {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { PATH: `${process.env['PATH'] ?? ''}:/usr/sbin:/sbin` },
  });
  return { status, stderr, lines: stdout.trim().split('\n') };
}

/** An overlay on another one: the kernel takes no third. */
const deep = `for n in 1 2; do
  mkdir -p /run/deep/$n/upper /run/deep/$n/work
  mount -t overlay overlay -o lowerdir=/opt,upperdir=/run/deep/$n/upper,workdir=/run/deep/$n/work /opt || exit 9
done`;

describe.each(makers)('a sandbox of $maker (missing: $missing)', ({ maker, missing }) => {
  const rows = ways.flatMap(([way, lacks]) => [
    [way, 'read-only', lacks] as const,
    [way, 'writable', lacks] as const,
  ]);
  it.for(rows)('made with %s is %s, and the machine stays as it is', ([way, kind, lacks], { skip }) => {
    const absent = missing === '' ? lacks : missing;
    skip(absent !== '', `missing: ${absent}`);
    expect(inNamespaces(maker, 'exec "$@"', way, kind, 'sh', '-c', script)).toEqual({
      status: 7,
      stderr: '',
      lines: [
        ...['pod', '10.0.0.1 here', 'of the volume', '1'],
        // The volume is read-only in both.
        kind === 'writable' ? '1' : '3',
        ...['file', 'own', 'kept', 'kept', 'kept', 'CapEff:\t00000000800425fb'],
        maker === 'root' ? '1' : '0',
      ],
    });
    expect(existsSync('/etc/servicenet-own') || existsSync('/etc-own')).toBe(false);
  });

  it.for(ways)('made with %s does not start where a layer cannot be mounted', ([way, lacks], { skip }) => {
    const absent = missing === '' ? lacks : missing;
    skip(absent !== '', `missing: ${absent}`);
    const setUp = `${deep}; "$@"; code=$?; ls /opt/pwned 2>/dev/null; exit $code`;
    const { status, stderr, lines } = inNamespaces(maker, setUp, way, 'writable', 'touch', '/opt/pwned');
    expect([status, lines]).toEqual([128, ['']]);
    expect(stderr).toContain('the kernel refuses a layer over /opt');
  });
});
