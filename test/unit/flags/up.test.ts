import { expect, test } from 'vitest';
import { program as commandLine } from '../../../src/commands/command-line/program.ts';
import { upConfig } from '../../../src/flags/up.ts';

/** What the flags of a command line mean. */
function read(args: readonly string[], program: readonly string[]) {
  const command = commandLine().commands.find((one) => one.name() === 'up');
  if (command === undefined) throw new Error('there is no command up');
  command.parseOptions([...args]);
  // The default of a flag that begins with "no" comes when a whole command line is parsed.
  return upConfig(
    { liveView: true, ...command.opts() },
    {
      ...{ isTerminal: false, program, selectControllers: () => [] },
      programs: { names: ['agnhost'], has: (name) => name === 'agnhost' },
    },
  );
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

test('programs for images are known ones', () => {
  expect(read(['--image', 'ghcr.io/a/b=agnhost', 'c=agnhost'], [])).toMatchObject({
    images: [
      { image: 'ghcr.io/a/b', program: 'agnhost' },
      { image: 'c', program: 'agnhost' },
    ],
  });
  expect(() => read(['--image', 'a=nginx'], [])).toThrow('there is no program "nginx" for "a"');
  expect(() => read(['--image', 'agnhost'], [])).toThrow('must be like');
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
