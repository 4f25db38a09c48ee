import { expect, test } from 'vitest';
import { programNames } from '../../../src/emulation/containers/images.ts';
import { imagePrograms } from '../../../src/flags/images.ts';
import { upConfig } from '../../../src/flags/up.ts';
import { givenFlags } from '../../support/command-line.ts';

/** What the flags of a command line mean. */
function read(args: readonly string[], program: readonly string[]) {
  return upConfig(givenFlags('up', args), program, '/home/me/.servicenet/kubeconfig', {
    selectControllers: () => [],
    isExecutable: (path) => path === '/bin/sh' || path.startsWith('/tmp/') || path === '/opt/link',
    isFolder: (path) => path === '/tmp/image',
    realPath: (path) => (path === '/opt/link' ? '/run/program' : path),
    absolutePath: (path) => (path.startsWith('/') ? path : `/here/${path}`),
  });
}

test('a program is inside only where it is asked for, and then there must be a network', () => {
  expect(read([], ['true'])).toMatchObject({ inside: false, network: 'auto' });
  expect(read(['--inside'], ['true'])).toMatchObject({ inside: true, network: 'on' });
});

test.each([
  [['--inside'], [], '--inside needs a program'],
  [['--inside', '--network', 'off'], ['true'], '--inside needs the cluster network'],
  [['--inside', '--nodes', '0'], ['true'], '--inside needs a node'],
])('%j with the program %j: %s', (args, program, message) => {
  expect(() => read(args, program)).toThrow(message);
});

test('programs for images are those that the cluster network has, and files that can be run', () => {
  expect(imagePrograms).toEqual(programNames);
  expect(read(['--image', 'a=/bin/sh'], []).images).toEqual([{ image: 'a', program: '/bin/sh' }]);
  expect(read(['--image', 'a=/tmp/image'], []).images).toEqual([{ image: 'a', program: '/tmp/image' }]);
  expect(() => read(['--image', 'a=/no/such'], [])).toThrow(
    '--image: there is no program "/no/such" for "a": the programs are server, agnhost, pause, commands, and executable files and folders by their absolute path',
  );
  for (const [path, folder] of [
    ['/tmp/program', '/tmp'],
    ['/opt/link', '/run'],
  ]) {
    expect(() => read(['--image', `a=${path}`], [])).toThrow(
      `--image: "${path}" for "a": containers have a ${folder} of their own, and would not find it: put it into another folder`,
    );
  }
  expect(read(['--image', 'ghcr.io/a/b=agnhost', 'c=agnhost'], [])).toMatchObject({
    images: [
      { image: 'ghcr.io/a/b', program: 'agnhost' },
      { image: 'c', program: 'agnhost' },
    ],
  });
  expect(() => read(['--image', 'a=nginx'], [])).toThrow('there is no program "nginx" for "a"');
  expect(() => read(['--image', 'agnhost'], [])).toThrow('must be like');
});

test('a program has a port of its own, and no live view', () => {
  expect(read([], [])).toMatchObject({ port: 6443, liveView: true });
  expect(read([], ['true'])).toMatchObject({ port: 0, liveView: false });
  expect(read(['--port', '7000', '--no-live-view'], [])).toMatchObject({ port: 7000, liveView: false });
});

test('the kubeconfig is in the file that is named', () => {
  expect(read([], []).kubeconfigPath).toBe('/home/me/.servicenet/kubeconfig');
  expect(read(['--write-kubeconfig', 'k'], []).kubeconfigPath).toBe('/here/k');
});

test('Pods have addresses of the families of the Services, and so has the pool', () => {
  const dualStack = ['--service-cluster-ip-range', '10.96.0.0/16,fd00::/112'];
  expect(read([], []).clusterCidrs).toEqual(['10.244.0.0/16']);
  expect(read(dualStack, []).clusterCidrs).toEqual(['10.244.0.0/16', 'fd00:10:244::/56']);
  const many = [...dualStack, '--nodes', '1000'];
  expect(read(many, []).clusterCidrs).toEqual(['10.244.0.0/14', 'fd00:10:244::/54']);
  expect(() => read([...many, '--cluster-cidr', '10.0.0.0/16'], [])).toThrow(
    '--cluster-cidr: "10.0.0.0/16" has room for 256 nodes, not for 1000',
  );
  expect(read(['--default-pool', '192.0.2.0/24,2001:db8::/64'], []).addressPool).toEqual(['192.0.2.0/24']);
  expect(read(['--default-pool', ''], []).addressPool).toEqual([]);
  expect(read([], []).addressPool).toBeUndefined();
});

test('processes need a network', () => {
  expect(read(['--containers', 'processes'], [])).toMatchObject({ containers: 'processes', network: 'on' });
  expect(() => read(['--containers', 'processes', '--network', 'off'], [])).toThrow(
    'needs the cluster network',
  );
});

test('the platform is kubernetes where no other is asked for', () => {
  expect(read([], [])).toMatchObject({ platform: 'kubernetes' });
  expect(read(['--platform', 'openshift'], [])).toMatchObject({ platform: 'openshift' });
});
