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
grep CapEff /proc/self/status; exit 7`;

/** With what each lacks here. */
const ways = [
  ['bwrap', missingProgram('bwrap', 'bubblewrap')],
  ['unshare', ''],
] as const;

describe.each(makers)('a sandbox of $maker (missing: $missing)', ({ maker, missing }) => {
  const rows = ways.flatMap(([way, lacks]) => [
    [way, 'read-only', lacks] as const,
    [way, 'writable', lacks] as const,
  ]);
  it.for(rows)('made with %s is %s, and the machine stays as it is', ([way, kind, lacks], { skip }) => {
    const absent = missing === '' ? lacks : missing;
    skip(absent !== '', `missing: ${absent}`);
    const words = [
      ...(maker === 'user' ? [...asUser, 'unshare', '--user', '--map-root-user'] : ['unshare']),
      ...['--net', '--mount', '--pid', '--mount-proc', '--fork', '--kill-child', 'sh', '-c'],
      'mount -t tmpfs tmpfs /run && exec "$@"',
      ...['sh', process.execPath, program, way, kind, 'sh', '-c', script],
    ];
    const { status, stdout, stderr } = spawnSync(words[0] ?? '', words.slice(1), {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { PATH: `${process.env['PATH'] ?? ''}:/usr/sbin:/sbin` },
    });
    expect({ status, stderr, lines: stdout.trim().split('\n') }).toEqual({
      status: 7,
      stderr: '',
      lines: [
        ...['pod', '10.0.0.1 here', 'of the volume', '1'],
        // The volume is read-only in both.
        kind === 'writable' ? '1' : '3',
        ...['file', 'own', 'kept', 'kept', 'kept', 'CapEff:\t00000000800425fb'],
      ],
    });
    expect(existsSync('/etc/servicenet-own') || existsSync('/etc-own')).toBe(false);
  });
});
