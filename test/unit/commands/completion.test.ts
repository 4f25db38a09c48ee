import { describe, expect, test } from 'vitest';
import { completions } from '../../../src/commands/completion.ts';
import { program } from '../../../src/commands/program.ts';

describe('what may stand where a word is typed', () => {
  test('commands, and commands of commands', () => {
    expect(completions(program(), [''])).toEqual(
      expect.arrayContaining(['up', 'run', 'trace', 'pools', 'completion']),
    );
    expect(completions(program(), [''])).not.toContain('complete');
    expect(completions(program(), ['pools', ''])).toEqual(['plan']);
    expect(completions(program(), ['completion', ''])).toEqual(['bash', 'zsh', 'fish']);
  });

  test('flags of the command that stands before', () => {
    const flags = completions(program(), ['up', '--nodes', '3', '--n']);
    expect(flags).toEqual(expect.arrayContaining(['--network', '--apply', '--no-live-view', '--help']));
    expect(flags).not.toContain('--matrix');
    expect(completions(program(), ['trace', '-'])).toContain('--matrix');
    expect(completions(program(), ['pools', 'plan', '-'])).toContain('--filename');
  });

  test.each([
    [
      ['up', '--network', ''],
      ['auto', 'on', 'off'],
    ],
    [
      ['up', '--network', '=', 'o'],
      ['auto', 'on', 'off'],
    ],
    [
      ['up', '--network=o'],
      ['--network=auto', '--network=on', '--network=off'],
    ],
    [
      ['audit', '-o', ''],
      ['table', 'json'],
    ],
    [['up', '--nodes', ''], []],
    [['up', '--data-dir', ''], [':files']],
    [['up', '--apply', 'a.yaml', ''], [':files']],
    [['up', '--', 'ku'], [':files']],
  ])('%j', (words, expected) => {
    expect(completions(program(), words)).toEqual(expected);
  });
});
