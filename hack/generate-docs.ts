/**
 * Writes docs/configuration.md from the command line itself, so that it cannot fall behind.
 *
 * `node hack/generate-docs.ts` writes; test/unit/hack/docs.test.ts fails when the file is not what it would write.
 */
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Argument, Command, Option } from 'commander';
import { format } from 'prettier';
import { program } from '../src/commands/program.ts';

const introduction = `# Configuration

The commands of servicenet and their flags. This page is generated from the command line by
\`node hack/generate-docs.ts\`; \`servicenet <command> --help\` prints the same texts.

Flags that kube-apiserver or kube-controller-manager also have mean the same as there. Durations are written as in Go
(\`15s\`, \`500ms\`, \`2m\`). An address to listen on is \`host:port\`, or \`:port\` for all interfaces, or \`0\` for none.
\`--controllers\` takes a comma-separated list: \`*\` for all that are on by default, \`name\` to turn one on, \`-name\` to turn
one off. The ending \`-controller\` of a name may be left out. An unknown name prints all that there are.

Exit codes: 0 for success, 1 for a failure, 2 for a wrong command line. \`audit\` and \`pools plan\` exit with 1 if there is
something to report, and with 2 if they failed. \`up\` with a program exits with the program's exit code.
`;

/** The text of docs/configuration.md. */
export function configurationReference(): Promise<string> {
  // A hidden command has no description.
  const shown = program().commands.filter((command) => command.description() !== '');
  const sections = shown.flatMap((command) => sectionsOf(command, 'servicenet'));
  const printing = { parser: 'markdown', printWidth: 110, singleQuote: true } as const;
  return format([introduction, ...sections].join('\n'), printing);
}

function sectionsOf(command: Command, parent: string): string[] {
  const name = `${parent} ${command.name()}`;
  const options = command.options.filter(({ hidden }) => !hidden);
  const rows = options.map(
    (option) => `| ${pipes(code(option.flags))} | ${pipes(defaultOf(option))} | ${meaningOf(option)} |`,
  );
  const operands = command.registeredArguments.map(
    (operand) => `\`${operand.name()}\`: ${meaningOf(operand)}`,
  );
  const usage = operands.length === 0 ? [] : ['', code(`${name} ${command.usage()}`), '', ...operands];
  const table = rows.length === 0 ? [] : ['', '| Flag | Default | Meaning |', '| --- | --- | --- |', ...rows];
  const section = [`## ${name}`, '', sentence(command.description()), ...usage, ...table, ''].join('\n');
  return [section, ...command.commands.flatMap((nested) => sectionsOf(nested, name))];
}

function meaningOf(option: Option | Argument): string {
  const choices = option.argChoices === undefined ? '' : ` One of ${option.argChoices.map(code).join(', ')}.`;
  return pipes(`${sentence(option.description).replaceAll('<', '&lt;').replaceAll('*', '\\*')}${choices}`);
}

function defaultOf(option: Option): string {
  const value: unknown = option.defaultValue;
  if (value === undefined || option.isBoolean()) return '';
  return code(typeof value === 'string' ? value : JSON.stringify(value));
}

function code(text: string): string {
  return `\`${text === '' ? '""' : text}\``;
}

function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
}

/** A pipe would end the cell. */
function pipes(text: string): string {
  return text.replaceAll('|', '\\|');
}

if (import.meta.main) {
  const path = fileURLToPath(new URL('../docs/configuration.md', import.meta.url));
  writeFileSync(path, await configurationReference());
}
