/** Completion of the command line in shells: their scripts ask `servicenet complete` for each word. */

/** A command as commander has it. */
interface Command {
  name(): string;
  readonly commands: readonly Command[];
  readonly options: readonly Option[];
  readonly registeredArguments: readonly { readonly argChoices?: readonly string[] }[];
}

interface Option {
  readonly flags: string;
  readonly short?: string;
  readonly long?: string;
  readonly hidden: boolean;
  /** It takes a value. */
  readonly required: boolean;
  readonly variadic: boolean;
  readonly argChoices?: readonly string[];
}

/** Instead of words: names of files complete it. */
const files = ':files';

/**
 * The words that may stand where the last of these is being typed; all of them, also those that do not begin like it.
 *
 * @param words behind the name of the program. bash hands over `--name=value` in three.
 * @returns `:files` alone where it is a file, and behind `--`.
 */
export function completions(root: Command, words: readonly string[]): readonly string[] {
  const typed = words.at(-1) ?? '';
  const before = words.slice(0, -1).filter((word) => word !== '=');
  let command = root;
  let valueOf: Option | undefined;
  for (const word of before) {
    if (word === '--') return [files];
    if (valueOf !== undefined && !valueOf.variadic) valueOf = undefined;
    else if (word.startsWith('-')) valueOf = word.includes('=') ? undefined : withValue(command, word);
    else if (valueOf === undefined) command = named(command, word) ?? command;
  }
  const [, name = '', inOneWord] = /^(--[^=]+)=(.*)$/.exec(typed) ?? [];
  if (inOneWord !== undefined)
    return valuesOf(withValue(command, name)).map((value) => prefixed(name, value));
  if (valueOf !== undefined && !(valueOf.variadic && typed.startsWith('-'))) return valuesOf(valueOf);
  if (typed.startsWith('-')) return [...optionsOf(command).flatMap(({ long }) => long ?? []), '--help'];
  const choices = command.registeredArguments.flatMap(({ argChoices = [] }) => argChoices);
  const nested = command.commands.map((each) => each.name()).filter((each) => each !== 'complete');
  return [...nested, ...choices];
}

function named(command: Command, word: string): Command | undefined {
  return command.commands.find((each) => each.name() === word);
}

function optionsOf(command: Command): readonly Option[] {
  return command.options.filter(({ hidden }) => !hidden);
}

function withValue(command: Command, word: string): Option | undefined {
  return optionsOf(command).find(({ short, long, required }) => required && [short, long].includes(word));
}

function valuesOf(option: Option | undefined): readonly string[] {
  if (option === undefined) return [];
  return option.argChoices ?? (/<(?:files?|folders?)\b/.test(option.flags) ? [files] : []);
}

function prefixed(name: string, value: string): string {
  return value === files ? files : `${name}=${value}`;
}

/** The scripts by shell. */
export const completionScripts: Readonly<Record<'bash' | 'zsh' | 'fish', string>> = {
  bash: `_servicenet() {
  local candidates word=\${COMP_WORDS[COMP_CWORD]}
  candidates=$(servicenet complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null) || return
  COMPREPLY=()
  if [ "$candidates" = ${files} ]; then
    compopt -o default 2>/dev/null
  else
    COMPREPLY=($(compgen -W "$candidates" -- "\${word#=}"))
  fi
}
complete -F _servicenet servicenet
`,
  zsh: `#compdef servicenet
_servicenet() {
  local -a candidates
  candidates=(\${(f)"$(servicenet complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)"})
  if [[ \${candidates[1]} == ${files} ]]; then
    _files
  else
    compadd -a candidates
  fi
}
compdef _servicenet servicenet
`,
  fish: `function __servicenet_complete
    set -l words (commandline -opc) (commandline -ct)
    set -l candidates (servicenet complete -- $words[2..] 2>/dev/null)
    if test "$candidates" = ${files}
        __fish_complete_path (commandline -ct)
    else
        printf '%s\\n' $candidates
    end
end
complete -c servicenet -f -a '(__servicenet_complete)'
`,
};
