import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, globSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { recordAt } from '../../src/objects/json.ts';
import { startApiServer } from '../../src/testing/index.ts';
import { Child } from '../e2e/child.ts';
import { applyStrictly, kustomize } from '../support/manifests.ts';
import { missingModules } from './modules.ts';
import { Builder, copyOf, type Stage, stagesOf, wordsOf } from '../support/dockerfile.ts';

const stages = stagesOf('Dockerfile');

/** What the Dockerfile makes. */
export function imageTests(): void {
  test('the context of a build holds what the Dockerfile copies, and nothing else', () => {
    const [first, ...taken] = readFileSync('.dockerignore', 'utf8').trim().split('\n');
    const copied = stages
      .flatMap(({ instructions }) => instructions.filter(({ name }) => name === 'COPY'))
      .map(({ text }) => copyOf(text))
      .filter(({ from }) => from === undefined)
      .flatMap(({ sources }) => sources);
    expect(first).toBe('*');
    expect(new Set(taken)).toEqual(new Set(copied.map((path) => `!${path}`)));
    const known = execFileSync('git', ['ls-files', '--', ...copied], { encoding: 'utf8' }).split('\n');
    for (const path of copied)
      expect(known.some((file) => file === path || file.startsWith(`${path}/`))).toBe(true);
  });

  describe('the image, built without a container', () => {
    let directory: string;
    let app: string;
    let image: Stage;

    beforeAll(() => {
      directory = mkdtempSync(join(tmpdir(), 'servicenet-image-'));
      const builder = new Builder(directory);
      const roots = stages.map((stage) => builder.build(stage));
      app = join(roots.at(-1) ?? '', 'app');
      const last = stages.at(-1);
      if (last === undefined) throw new Error('the Dockerfile has no stage');
      image = last;
    }, 480_000);

    afterAll(() => {
      rmSync(directory, { recursive: true });
    });

    test('has the program, without what only compilers and debuggers read', () => {
      expect(readdirSync(app).toSorted()).toEqual(['LICENSE', 'dist', 'node_modules', 'package.json']);
      const strange = globSync('**/*.{ts,mts,cts,map,tsbuildinfo}', { cwd: app });
      expect(strange).toEqual([]);
      expect(missingModules(join(app, 'dist'))).toEqual([]);
    });

    test('has the dependencies of production, with their licences', () => {
      const manifest: unknown = JSON.parse(readFileSync('package.json', 'utf8'));
      const missing = (field: string): string[] =>
        Object.keys(recordAt(manifest, field)).filter((name) => !existsSync(join(app, 'node_modules', name)));
      expect(missing('dependencies')).toEqual([]);
      expect(missing('devDependencies')).toEqual(expect.arrayContaining(['eslint', 'typescript', 'vitest']));
      expect(globSync('node_modules/**/LICEN[CS]E*', { cwd: app }).length).toBeGreaterThan(50);
    });

    test('works with a kubeconfig, is healthy to Docker while it does, and ends as a Pod is stopped', async () => {
      const server = await startApiServer();
      await applyStrictly(server.client, kustomize('deploy/crds'));
      const kubeconfig = join(directory, 'kubeconfig');
      writeFileSync(kubeconfig, server.kubeconfig);
      const [node, ...entry] = wordsOf(image, 'ENTRYPOINT').map((word) =>
        word.replace(/^\/app\//, `${app}/`),
      );
      const flags = ['--kubeconfig', kubeconfig, '--metrics-bind-address=127.0.0.1:0', '--no-leader-elect'];
      const child = new Child(process.execPath, [...entry, ...wordsOf(image, 'CMD'), ...flags]);
      try {
        expect(node).toBe('node');
        await child.until(() => child.output.includes('controllers started'));
        const port = /"port":(\d+)/.exec(child.output)?.[1] ?? '';
        await child.until(async () => (await fetch(`http://127.0.0.1:${port}/readyz`)).ok);
        const [asked, ...check] = wordsOf(image, 'HEALTHCHECK').map((word) =>
          word.replace(':8080/', `:${port}/`),
        );
        expect(asked).toBe('node');
        const health = (): number | null => spawnSync(process.execPath, check).status;
        expect(health()).toBe(0);
        await child.end();
        expect(child.output).not.toMatch(/"level":"(error|fatal)"/);
        expect(child.output).toContain('"msg":"stopping');
        expect(health()).toBe(1);
      } finally {
        await child.end();
        await server.stop();
      }
    });
  });
}
