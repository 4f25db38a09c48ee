import { describe, expect, test } from 'vitest';
import { explainUnavailable, missingProgram } from '../../../src/emulation/network-sandbox.ts';

// What util-linux 2.38, dash, bash and iproute2 print.
describe('what to do where the programs print', () => {
  test.each([
    ['unshare: unshare failed: No space left on device\n', 'user.max_user_namespaces'],
    ['unshare: unshare failed: Operation not permitted\n', 'kernel.apparmor_restrict_unprivileged_userns'],
    ['unshare: write failed /proc/self/uid_map: Operation not permitted\n', 'apparmor_restrict'],
    ['unshare: cannot open /proc/self/setgroups: Permission denied\n', 'apparmor_restrict'],
    ['mount: /run: permission denied.\n', 'mounting inside the namespaces is not permitted'],
    ['RTNETLINK answers: Operation not supported\nCommand failed -:2\n', 'modprobe -a bridge veth'],
    ['Error: Unknown device type.\nCommand failed -:2\n', 'modprobe -a bridge veth'],
    ['sh: 4: ip: not found\n', 'there is no ip: install the package iproute2'],
    ['sh: line 4: ip: command not found\n', 'there is no ip: install the package iproute2'],
    ['sh: 5: ip: Permission denied\n', 'there is no ip: install the package iproute2'],
    ['sh: 2: mount: not found\n', 'there is no mount: install the package mount'],
    ['setpriv: failed to execute unshare: No such file or directory\n', 'install the package util-linux'],
  ])('%j', (printed, expected) => {
    expect(explainUnavailable(printed)).toContain(expected);
  });

  test('something else: its first line; nothing: that', () => {
    expect(explainUnavailable('sh: 9: surprise\nand more\n')).toBe('sh: 9: surprise');
    expect(explainUnavailable('')).toBe('the namespaces ended without a word');
  });

  test.each(['No space left on device', 'Operation not permitted'])('says that root can: %s', (reason) => {
    expect(explainUnavailable(`unshare: unshare failed: ${reason}\n`)).toContain('run it as root');
  });
});

test('a failure to begin is the missing first program, or the system has another reason', () => {
  const missing = Object.assign(new Error('spawn setpriv ENOENT'), { code: 'ENOENT' });
  expect(missingProgram(missing)).toBe('there is no setpriv: install the package util-linux');
  expect(missingProgram(new Error('spawn setpriv EAGAIN'))).toBe('spawn setpriv EAGAIN');
});
