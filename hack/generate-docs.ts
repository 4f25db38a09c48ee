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

Written by \`node hack/generate-docs.ts\` from the flags themselves. \`servicenet <command> --help\` says the same.

Flags that kube-apiserver and kube-controller-manager have, too, mean what they mean there. Durations are written as
in Go (\`15s\`, \`500ms\`, \`2m\`). Addresses to listen on are \`host:port\`, \`:port\` for every interface, \`0\` for none.

Exit codes: 0 when all went well, 1 when something failed, 2 for a wrong command line. For \`audit\` and \`pools plan\` 1
says that there is something to see, 2 that they could not look. \`up\` with a program ends as the program does.
`;

/** The text of docs/configuration.md. */
export function configurationReference(): Promise<string> {
  const sections = program().commands.flatMap((command) => sectionsOf(command, 'servicenet'));
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
  const table = rows.length === 0 ? [] : ['', '| flag | default | meaning |', '| --- | --- | --- |', ...rows];
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
