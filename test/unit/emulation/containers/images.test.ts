import { describe, expect, it } from 'vitest';
import { builtInCommand, refusedCommand } from '../../../../src/emulation/containers/built-in-commands.ts';
import { ContainerLog } from '../../../../src/emulation/containers/container-log.ts';
import { Images, isProgram, programNamed } from '../../../../src/emulation/containers/images.ts';
import type { Container } from '../../../../src/objects/types/core.generated.ts';

const agnhost = 'registry.k8s.io/e2e-test-images/agnhost';
const standIn = { kind: 'stand-in' };
const command = (...words: string[]): object => ({ kind: 'command', words });

describe('what runs for a container', () => {
  it.each<[string, Omit<Container, 'name'>, object, object]>([
    ['an unknown image', { image: 'nginx:1.29' }, standIn, standIn],
    ['arguments of an unknown image', { image: 'nginx', args: ['-v'] }, standIn, standIn],
    [
      'a command of an unknown image',
      { image: 'x', command: ['/manager'], args: ['-v'] },
      standIn,
      command('/manager', '-v'),
    ],
    [
      'agnhost',
      { image: `${agnhost}:2.53`, args: ['netexec'] },
      { kind: 'agnhost', args: ['netexec'] },
      { kind: 'agnhost', args: ['netexec'] },
    ],
    [
      'agnhost by its command',
      { image: agnhost, command: ['/agnhost', 'pause'] },
      { kind: 'agnhost', args: ['pause'] },
      { kind: 'agnhost', args: ['pause'] },
    ],
    [
      'a shell of agnhost',
      { image: agnhost, command: ['sh', '-c', 'x'] },
      command('sh', '-c', 'x'),
      command('sh', '-c', 'x'),
    ],
    ['a shell', { image: 'docker.io/library/busybox@sha256:0' }, command('sh'), command('sh')],
    [
      'arguments of a shell',
      { image: 'busybox', args: ['sleep', '1'] },
      command('sleep', '1'),
      command('sleep', '1'),
    ],
    ['a registry with a port', { image: 'localhost:5000/busybox' }, standIn, standIn],
    [
      'an own image',
      { image: 'ghcr.io/shop/tool:v1', args: ['-x'] },
      command('/bin/true', '-x'),
      command('/bin/true', '-x'),
    ],
  ])('%s', (_, container, without, withProcesses) => {
    const own = new Map([
      ['ghcr.io/shop/tool', { kind: 'commands', entrypoint: ['/bin/true'], cmd: [] }],
    ] as const);
    expect(new Images(own, false).resolve(container)).toEqual(without);
    expect(new Images(own, true).resolve(container)).toEqual(withProcesses);
  });

  it('is a program that there is', () => {
    expect(['server', 'agnhost', 'pause', 'commands', '/bin/sh'].map(isProgram)).not.toContain(false);
    expect(['nginx', '/no/such', '/etc', ''].map(isProgram)).not.toContain(true);
    expect(programNamed('/bin/sh')).toEqual({ kind: 'commands', entrypoint: ['/bin/sh'], cmd: [] });
  });

  it('without processes is what is built in, and else fails with 127 and names the flag', async () => {
    expect(await builtInCommand(['true'])?.ended).toEqual({ exitCode: 0 });
    expect(await builtInCommand(['/bin/false'])?.ended).toEqual({ exitCode: 1 });
    const sleeping = builtInCommand(['sleep', '1h']);
    sleeping?.signal('SIGTERM');
    sleeping?.signal('SIGKILL');
    expect(await sleeping?.ended).toEqual({ exitCode: 137 });
    expect(builtInCommand(['curl', 'http://x'])).toBeUndefined();
    const { exitCode, message } = await refusedCommand(['curl'], new ContainerLog('/nowhere')).ended;
    expect(exitCode).toBe(127);
    expect(message).toContain('--containers=processes');
  });
});
