import type { Command } from 'commander';
import { expect, test } from 'vitest';
import { program } from '../../../src/commands/program.ts';

function withNested(command: Command): readonly Command[] {
  return [command, ...command.commands.flatMap(withNested)];
}

const pages = withNested(program()).map((command): [string, Command] => [command.name(), command]);

test.each(pages)('--help of %s fits into 80 columns, and describes every option', (_, command) => {
  command.configureOutput({ getOutHelpWidth: () => 80 });
  const help = command.helpInformation();
  expect(help.split('\n').filter((line) => line.length > 80)).toEqual([]);
  const words = help.replaceAll(/\s+/g, ' ');
  const lacking = command.options
    .filter(({ hidden }) => !hidden)
    .flatMap(({ flags, description }) => [flags, description])
    .filter((text) => !words.includes(text.replaceAll(/\s+/g, ' ')));
  expect(lacking).toEqual([]);
});

test('a wider terminal has longer lines', () => {
  const root = program();
  root.configureOutput({ getOutHelpWidth: () => 200 });
  expect(
    Math.max(
      ...root
        .helpInformation()
        .split('\n')
        .map((line) => line.length),
    ),
  ).toBeGreaterThan(90);
});
