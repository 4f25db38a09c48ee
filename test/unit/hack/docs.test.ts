import { execFileSync } from 'node:child_process';
import { existsSync, globSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { describe, expect, test } from 'vitest';
import { configurationReference } from '../../../hack/generate-docs.ts';
import {
  allocationReasons,
  eventReasons,
  forwardingReasons,
  loadBalancerReasons,
  notAnnouncedReasons,
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
      ...[...notAnnouncedReasons, ...forwardingReasons, ...logged],
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
