import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** `--name=value` of a command line. @throws {Error} for anything else, as Go's programs do. */
export function flagsOf(args: readonly string[]): ReadonlyMap<string, string> {
  return new Map(
    args.map((arg) => {
      const [, name = '', value = 'true'] = /^--([a-z-]+)(?:=(.*))?$/.exec(arg) ?? [];
      if (name === '') throw new Error(`unknown flag: ${arg}`);
      return [name, value];
    }),
  );
}

/** For the test: what the program was started with, where `STAND_IN_NOTES` names a directory. */
export function noteFlags(program: string, flags: ReadonlyMap<string, string>): void {
  const directory = process.env['STAND_IN_NOTES'];
  if (directory === undefined) return;
  writeFileSync(join(directory, `${program}.json`), JSON.stringify(Object.fromEntries(flags)));
}
