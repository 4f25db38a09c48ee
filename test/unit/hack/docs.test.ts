import { execFileSync } from 'node:child_process';
import { existsSync, globSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { type Command, CommanderError } from 'commander';
import { describe, expect, test } from 'vitest';
import { program } from '../../../src/commands/program.ts';
import { configurationReference } from '../../../hack/generate-docs.ts';
import {
  allocationReasons,
  eventReasons,
  forwardingReasons,
  loadBalancerReasons,
  noEndpointReasons,
  notAnnouncedReasons,
  routeRefusalReasons,
} from '../../../src/objects/reasons.ts';

const read = (file: string): string => readFileSync(file, 'utf8');
const documents = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', '*.md'])
  .toString()
  .trim()
  .split('\n');

/** The anchors of a document, as GitHub makes them of its headings. */
function anchorsOf(document: string): Set<string> {
  const text = read(document).replace(/^```[\s\S]*?^```$/gm, '');
  return new Set(
    [...text.matchAll(/^#{1,6} +(.+)$/gm)].map(([, heading = '']) =>
      heading
        .trim()
        .toLowerCase()
        .replace(/[^\p{L}\p{N}\p{M} _-]/gu, '')
        .replaceAll(' ', '-'),
    ),
  );
}

/** All that a pattern's first group finds in the sources, each once. */
function inSources(pattern: RegExp, folder = 'src'): string[] {
  const found = globSync(`${folder}/**/*.ts`).flatMap((file) =>
    [...read(file).matchAll(pattern)].map(([, word = '']) => word),
  );
  return [...new Set(found)].sort();
}

/** The arguments of our program in the blocks of commands of a document; those with parts that a reader fills in are left out. */
function ownCommandLines(text: string): string[][] {
  const blocks = [...text.matchAll(/^ *```(sh|console)\n([\s\S]*?)^ *```$/gm)];
  const lines = blocks.flatMap(([, kind, block = '']) =>
    block
      .replaceAll(/\\\n\s*/g, ' ')
      .split('\n')
      .flatMap((line) => (kind === 'sh' ? line : (/^ *\$ (.*)$/.exec(line)?.[1] ?? []))),
  );
  return lines.flatMap((line) => {
    const [, rest] = /^\s*(?:npx |npm run -s )?servicenet (?:-- )?(.*)$/.exec(line) ?? [];
    return rest === undefined || /<[a-z]|…/.test(rest) ? [] : [wordsOf(rest)];
  });
}

/** What a text names of our program in its prose: the arguments of commands, and flags that stand alone. */
function namedInProse(text: string): { readonly commands: string[][]; readonly flags: string[] } {
  const prose = text.replace(/^ *```[\s\S]*?^ *```$/gm, '');
  const spans = [...prose.matchAll(/`([^`\n]+)`/g)].map(([, span = '']) => span);
  return {
    commands: spans.flatMap((span) => {
      const [, rest] = /^(?:npm run -s )?servicenet (?:-- )?([a-z].*)$/.exec(span) ?? [];
      return rest === undefined || /<|…|\||\[/.test(rest) ? [] : [wordsOf(rest)];
    }),
    flags: spans.flatMap((span) => /^--[a-z][a-z-]*/.exec(span)?.[0] ?? []),
  };
}

/** All flags of a command and of those below it. */
function flagsOf(command: Command): string[] {
  return [...command.options.flatMap(({ long }) => long ?? []), ...command.commands.flatMap(flagsOf)];
}

/** The words of a command as a shell has them, up to a pipe or a comment. */
function wordsOf(command: string): string[] {
  const words: string[] = [];
  for (const [word] of command.matchAll(/(?:"[^"]*"|'[^']*'|[^\s"'])+/g)) {
    if (/^(?:#|\||&|;|>)/.test(word)) break;
    words.push(word.replaceAll(/["']/g, ''));
  }
  return words;
}

/** Why commander refuses the arguments of our program; undefined: it does not. */
function problemOf(words: readonly string[]): string | undefined {
  const root = program();
  const silence = (command: Command): void => {
    command.configureOutput({ writeErr: () => undefined, writeOut: () => undefined });
    command.action(() => undefined);
    for (const nested of command.commands) silence(nested);
  };
  silence(root);
  try {
    root.parse([...words], { from: 'user' });
    return undefined;
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    return error.exitCode === 0 ? undefined : error.message;
  }
}

/** Flags of other programs that stand alone in prose: of k3s, docker, Node.js, MetalLB, kube-proxy and our own scripts. */
const flagsOfOthers: Readonly<Record<string, readonly string[]>> = {
  'CONTRIBUTING.md': ['--first', '--traces', '--url'],
  'docs/announcing.md': ['--disable'],
  'docs/deploying.md': ['--build-arg', '--disable'],
  'docs/internals.md': ['--max-semi-space-size'],
  'docs/migrating-from-metallb.md': ['--webhook-mode'],
  'docs/performance.md': [
    ...['--max-semi-space-size', '--only', '--services'],
    ...['--lite-mode', '--no-wasm-tier-up', '--optimize-for-size', '--single-threaded-gc'],
  ],
  'docs/policies.md': ['--disable-network-policy'],
  'docs/replacing-kube-proxy.md': ['--disable-kube-proxy', '--feature-gates', '--force-conflicts'],
};

describe('the documents', () => {
  test('have the flags as they are: run `node hack/generate-docs.ts`', async () => {
    expect(read('docs/configuration.md')).toBe(await configurationReference());
  });

  test('explain every reason that users see', () => {
    const text = read('docs/troubleshooting.md');
    // Those of log lines are where they are logged.
    const logged = inSources(
      /\breason: '([A-Z]\w+)'/g,
      'src/{controllers,platforms,runtime,node,router,dns,commands,network/egress,network/http}',
    );
    const words = [
      ...[...eventReasons, ...allocationReasons, ...loadBalancerReasons],
      ...noEndpointReasons,
      ...[...notAnnouncedReasons, ...forwardingReasons, ...routeRefusalReasons, ...logged],
    ];
    expect(logged).toContain('OtherImplementation');
    expect(words.filter((word) => !text.includes(`\`${word}\``))).toEqual([]);
  });

  test('explain every line of the log that is a warning or worse', () => {
    const text = read('docs/troubleshooting.md');
    const lines = inSources(/\blog\.(?:warn|error|fatal)\([^;]*?'([a-z][^']+)',?\s*\);/g);
    expect(lines).toContain('lost the lease, stopping work');
    expect(lines.length).toBeGreaterThan(25);
    expect(lines.filter((line) => !text.includes(`\`${line}\``))).toEqual([]);
  });

  test.each(['ARCHITECTURE.md', 'CONTRIBUTING.md', 'docs/internals.md'])(
    '%s names what is there',
    (document) => {
      const text = read(document).replace(/^ *```[\s\S]*?^ *```$/gm, '');
      const rooms = readdirSync('src');
      const paths = [...text.matchAll(/`([\w.*<>{},-]+(?:\/[\w.*<>{},-]+)*\/?)`/g)]
        .map(([, path = '']) => path)
        .filter((path) => /[/]/.test(path) && !path.includes('…'))
        .flatMap((path) => {
          const [top = ''] = path.split('/');
          if (['src', 'test', 'hack', 'deploy', 'docs'].includes(top)) return [path];
          return rooms.includes(top) ? [`src/${path}`] : [];
        });
      expect(paths.length).toBeGreaterThan(10);
      // A word in brackets stands for any name.
      const isThere = (path: string): boolean =>
        globSync(path.replaceAll(/<[^>]+>/g, '*').replace(/\/$/, '')).length > 0;
      expect(paths.filter((path) => !isThere(path))).toEqual([]);
    },
  );

  test.each(documents)('%s links to what is there', (document) => {
    const text = read(document).replace(/^ *```[\s\S]*?^ *```$/gm, '');
    const links = [...text.matchAll(/\]\(([^)\s]+)\)/g)].map(([, link = '']) => link);
    const broken = links
      .filter((link) => !/^https?:/.test(link))
      .filter((link) => {
        const [path = '', anchor] = link.split('#', 2);
        const target = path === '' ? document : normalize(join(dirname(document), path));
        return !existsSync(target) || (anchor !== undefined && !anchorsOf(target).has(anchor));
      });
    expect(broken).toEqual([]);
  });

  test.each(documents)('%s has command lines of ours that are understood', (document) => {
    const refused = ownCommandLines(read(document)).flatMap((words) => {
      const problem = problemOf(words);
      return problem === undefined ? [] : [`${words.join(' ')}: ${problem}`];
    });
    expect(refused).toEqual([]);
  });

  // Those of tests are about programs of their own.
  const ofUsers = documents.filter((document) => !document.startsWith('test/'));
  test.each(ofUsers)('%s names commands and flags of ours that are there', (document) => {
    const { commands, flags } = namedInProse(read(document));
    const refused = commands
      .filter(([command]) => command !== 'is')
      .flatMap((words) => {
        const problem = problemOf(words);
        // What a command is about is said elsewhere.
        const isRight = problem === undefined || /missing required argument|argument missing/.test(problem);
        return isRight ? [] : [`${words.join(' ')}: ${problem}`];
      });
    expect(refused).toEqual([]);
    const known = [...flagsOf(program()), '--help', ...(flagsOfOthers[document] ?? [])];
    expect(flags.filter((flag) => !known.includes(flag))).toEqual([]);
    expect((flagsOfOthers[document] ?? []).filter((flag) => !flags.includes(flag))).toEqual([]);
  });

  test('have many of them, and a wrong one is found', () => {
    const wrong = namedInProse('`servicenet up --bogus 1` and `--bogus=1` of `servicenet <command>`');
    expect(wrong).toEqual({ commands: [['up', '--bogus', '1']], flags: ['--bogus'] });
    expect(documents.flatMap((document) => namedInProse(read(document)).flags).length).toBeGreaterThan(200);
    expect(documents.flatMap((document) => ownCommandLines(read(document))).length).toBeGreaterThan(40);
    expect(ownCommandLines('```sh\nservicenet up --bogus 1 | cat # all\n```')).toEqual([
      ['up', '--bogus', '1'],
    ]);
    expect(problemOf(['up', '--bogus', '1'])).toContain("unknown option '--bogus'");
    expect(problemOf(['pools', 'plan', '-f', 'pool.yaml'])).toBeUndefined();
    expect(problemOf(['run'])).toContain('missing required argument');
  });

  test('name tests that exist behind the claims about security', () => {
    const [, claims = ''] = readFileSync('SECURITY.md', 'utf8').split('Behind each claim');
    const named = [...claims.matchAll(/ \(([a-z][a-z/-]*(?:, [a-z][a-z/-]*)*)\)/g)].flatMap(
      ([, names = '']) => names.split(', '),
    );
    const places = (name: string): string[] => {
      const path = name.includes('/') ? name : `integration/${name}`;
      return [join('test', `${path}.test.ts`), join('test', path)];
    };
    expect(named.length).toBeGreaterThan(30);
    expect(named.filter((name) => !places(name).some((path) => existsSync(path)))).toEqual([]);
  });
});

test('a command that is to be copied has no comment behind it: interactive zsh takes it as arguments', () => {
  const commented = documents.flatMap((document) =>
    [...read(document).matchAll(/^ *```(?:console|shell|sh|bash|zsh)\n([\s\S]*?)^ *```$/gm)].flatMap(
      ([, block = '']) =>
        block.split('\n').filter((line) => /\S +# /.test(line.replaceAll(/'[^']*'|"[^"]*"/g, '_'))),
    ),
  );
  expect(commented).toEqual([]);
});
