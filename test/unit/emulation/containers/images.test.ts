import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  exposedPort,
  type ImageProgram,
  Images,
  programNamed,
  programNames,
} from '../../../../src/emulation/containers/images.ts';
import { guestImages } from '../../../../src/guests/index.ts';
import type { Container } from '../../../../src/objects/types/core.generated.ts';

const agnhost = 'registry.k8s.io/e2e-test-images/agnhost';
const standIn = { kind: 'stand-in' };
const command = (...argv: string[]): object => ({ kind: 'command', argv });
const ours = (repository: string, ...argv: string[]): object => ({
  ...{ kind: 'program', argv },
  image: guestImages.byRepository.get(repository),
});

describe('what runs for a container', () => {
  it.each<[string, Omit<Container, 'name'>, object]>([
    ['an unknown image', { image: 'nginx:1.29' }, standIn],
    ['arguments of an unknown image', { image: 'nginx', args: ['-v'] }, standIn],
    [
      'a command of an unknown image',
      { image: 'x', command: ['/manager'], args: ['-v'] },
      command('/manager', '-v'),
    ],
    [
      'a command of an image that is given the server',
      { image: 'ghcr.io/shop/web', command: ['/web'] },
      standIn,
    ],
    ['agnhost', { image: `${agnhost}:2.53`, args: ['netexec'] }, ours(agnhost, '/agnhost', 'netexec')],
    [
      'agnhost by its command',
      { image: agnhost, command: ['/agnhost', 'pause'] },
      ours(agnhost, '/agnhost', 'pause'),
    ],
    ['a shell of agnhost', { image: agnhost, command: ['sh', '-c', 'x'] }, command('sh', '-c', 'x')],
    ['a shell', { image: 'docker.io/library/busybox@sha256:0' }, command('sh')],
    ['arguments of a shell', { image: 'busybox', args: ['sleep', '1'] }, command('sleep', '1')],
    ['another test image', { image: 'registry.k8s.io/e2e-test-images/nginx:1.15-4', args: ['x'] }, standIn],
    ['a registry with a port', { image: 'localhost:5000/busybox' }, standIn],
    [
      'an image that is given agnhost',
      { image: 'ghcr.io/shop/e2e', args: ['pause'] },
      ours(agnhost, '/agnhost', 'pause'),
    ],
    [
      'the real agnhost',
      { image: `${agnhost}:9`, args: ['netexec'] },
      command('/opt/k8s/agnhost', 'netexec'),
    ],
    [
      'the real agnhost where tests look for it',
      { image: `${agnhost}:9`, command: ['/agnhost', 'netexec'], args: ['--http-port=80'] },
      command('/opt/k8s/agnhost', 'netexec', '--http-port=80'),
    ],
    [
      'another command of the real agnhost',
      { image: `${agnhost}:9`, command: ['sh', '-c', 'x'] },
      command('sh', '-c', 'x'),
    ],
    ['the real pause', { image: 'registry.k8s.io/pause:3.10' }, command('/pause')],
    ['an own image', { image: 'ghcr.io/shop/tool:v1', args: ['-x'] }, command('/bin/true', '-x')],
  ])('%s', (_, container, expected) => {
    const own = new Map<string, ImageProgram>([
      ['ghcr.io/shop/tool', { kind: 'file', path: '/bin/true' }],
      [`${agnhost}:9`, { kind: 'file', path: '/opt/k8s/agnhost' }],
      ['registry.k8s.io/pause', { kind: 'file', path: '/pause' }],
      ['ghcr.io/shop/web', { kind: 'server' }],
      ['ghcr.io/shop/e2e', { kind: 'program', name: 'agnhost' }],
    ]);
    expect(new Images(own, guestImages).resolve(container)).toEqual(expected);
  });

  it('has a name, or is a file', () => {
    const named = (name: string): ImageProgram | undefined => programNamed(name, (path) => path === '/etc');
    expect(programNames.map(named)).not.toContain(undefined);
    expect(['nginx', ''].map(named)).toEqual([undefined, undefined]);
    expect(named('/bin/sh')).toEqual({ kind: 'file', path: '/bin/sh' });
    expect(named('/etc')).toEqual({ kind: 'folder', path: '/etc' });
  });

  it('is the file of its name in a folder, or a shell, beside the other files of the folder', () => {
    const folder = mkdtempSync(join(tmpdir(), 'image-'));
    try {
      mkdirSync(join(folder, 'tool/bin'), { recursive: true });
      writeFileSync(join(folder, 'tool/tool'), '');
      writeFileSync(join(folder, 'tool/bin/other'), '');
      symlinkSync('other', join(folder, 'tool/bin/link'));
      symlinkSync('..', join(folder, 'tool/bin/circle'));
      symlinkSync('itself', join(folder, 'tool/bin/itself'));
      mkdirSync(join(folder, 'files'));
      const images = new Images(
        new Map(['tool', 'files'].map((name) => [name, { kind: 'folder', path: join(folder, name) }])),
        guestImages,
      );
      expect(images.resolve({ image: 'tool', args: ['-x'] })).toEqual(command('/tool', '-x'));
      expect(images.resolve({ image: 'tool', command: ['other'] })).toEqual(command('other'));
      expect(images.resolve({ image: 'files:1' })).toEqual(command('sh'));
      expect(images.filesOf('tool')).toEqual(
        new Map(['/tool', '/bin/other', '/bin/link'].map((at) => [at, join(folder, 'tool', at)])),
      );
      expect(images.folderOf('files:1')).toBe(join(folder, 'files'));
      expect([images.filesOf('busybox').size, images.folderOf('busybox')]).toEqual([0, undefined]);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it('is in the root folder of its containers, where it is a program of ours or a file of the machine', () => {
    const own = new Map<string, ImageProgram>([
      [`${agnhost}:1`, { kind: 'file', path: '/opt/agnhost' }],
      ['x', { kind: 'file', path: '/x' }],
      ['y', { kind: 'program', name: 'agnhost' }],
    ]);
    const images = new Images(own, guestImages);
    expect(images.executables(`${agnhost}:1`)).toEqual(
      new Map([['/agnhost', '#!/bin/sh\nexec /opt/agnhost "$@"\n']]),
    );
    for (const image of [agnhost, 'y']) {
      expect([...images.executables(image)]).toEqual([['/agnhost', expect.stringContaining('--image')]]);
    }
    for (const image of ['x', 'busybox', undefined]) expect(images.executables(image).size).toBe(0);
  });
});

it.each([
  ['nginx:1.29', 80],
  ['docker.io/library/httpd', 80],
  ['registry.k8s.io/echoserver:1.10', 8080],
  ['gcr.io/google-samples/kubernetes-bootcamp:v1', 8080],
  ['docker.io/jocatalin/kubernetes-bootcamp:v2', 8080],
  ['hashicorp/http-echo', 5678],
  ['ghcr.io/shop/nginx', undefined],
  ['postgres', undefined],
])('%s listens at port %s where its container declares none', (image, port) => {
  expect(exposedPort(image)).toBe(port);
});
