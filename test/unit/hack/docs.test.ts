import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { existsSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { configurationReference } from '../../../hack/generate-docs.ts';
import { reasons as allocationReasons } from '../../../src/controllers/service-allocation/reasons.ts';
import { reasons as loadBalancerReasons } from '../../../src/controllers/load-balancer/reasons.ts';

const documents = [
  ...readdirSync('docs').map((file) => join('docs', file)),
  ...['README.md', 'CONTRIBUTING.md', 'SECURITY.md', 'ARCHITECTURE.md'],
].filter((file) => file.endsWith('.md'));

describe('the documents', () => {
  test('have the flags as they are: run `node hack/generate-docs.ts`', async () => {
    expect(readFileSync('docs/configuration.md', 'utf8')).toBe(await configurationReference());
  });

  test('explain every word that Services are told', () => {
    const text = readFileSync('docs/troubleshooting.md', 'utf8');
    const missing = [...allocationReasons, ...loadBalancerReasons].filter(
      (reason) => !text.includes(`\`${reason}\``),
    );
    expect(missing).toEqual([]);
  });

  test.each(documents)('%s links to files that exist', (document) => {
    const links = [...readFileSync(document, 'utf8').matchAll(/\]\(([^)#\s]+)/g)].map(
      ([, link = '']) => link,
    );
    const broken = links.filter(
      (link) => !/^https?:/.test(link) && !existsSync(join(dirname(document), link)),
    );
    expect(broken).toEqual([]);
  });
});
