import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { chartFiles } from '../../hack/generate-chart.ts';
import type { KubeObject } from '../../src/objects/meta.ts';
import { isRecord } from '../../src/objects/json.ts';
import { at, listAt, textAt } from '../../src/objects/read.ts';
import { kustomize, nameOf, parseManifests } from '../support/manifests.ts';
import { renderTemplate } from '../support/helm-templates.ts';

const chart = 'deploy/chart';
const namespace = 'servicenet-system';

/** The chart's objects with its own values, some of them changed; CRDs come first, as Helm has it. */
function render(changed: object = {}): KubeObject[] {
  const values: unknown = parse(readFileSync(join(chart, 'values.yaml'), 'utf8'));
  const crds = readFileSync(join(chart, 'crds/servicenet.dev_addresspools.yaml'), 'utf8');
  const templates = readdirSync(join(chart, 'templates')).map((file) =>
    renderTemplate(readFileSync(join(chart, 'templates', file), 'utf8'), {
      Values: { ...(isRecord(values) ? values : {}), ...changed },
      Release: { Namespace: namespace },
    }),
  );
  return [crds, ...templates].flatMap(parseManifests);
}

function byName(objects: readonly KubeObject[]): KubeObject[] {
  return [...objects].sort((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1));
}

describe('the Helm chart', () => {
  test('is what the generator makes of the base: run `node hack/generate-chart.ts`', () => {
    const written = readdirSync(chart, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name).slice(chart.length + 1));
    const files = chartFiles();
    expect(written.sort()).toEqual([...files.keys()].sort());
    for (const [path, text] of files) expect(readFileSync(join(chart, path), 'utf8'), path).toBe(text);
  });

  test('renders to the objects of the base, but for the namespace, which Helm makes', () => {
    const base = kustomize('deploy/base').filter(({ kind }) => kind !== 'Namespace');
    expect(byName(render())).toEqual(byName(base));
  });

  test('takes its values', () => {
    const objects = render({
      replicas: 3,
      image: { repository: 'registry.example:5000/servicenet', tag: 'v1', pullPolicy: 'Always' },
      controllers: '*,-load-balancer',
      serviceMonitor: { enabled: true },
      endpoints: { enabled: true },
      networkPolicy: { enabled: false },
    });
    const names = objects.map(nameOf);
    expect(names).toContain('ServiceMonitor/servicenet');
    expect(names).toContain('ClusterRole/servicenet-endpoints');
    expect(names).toContain('ClusterRoleBinding/servicenet-endpoints');
    expect(names).not.toContain('NetworkPolicy/servicenet');
    const deployment = objects.find(({ kind }) => kind === 'Deployment');
    expect(at(deployment, 'spec', 'replicas')).toBe(3);
    const [container] = listAt(deployment, 'spec', 'template', 'spec', 'containers');
    expect(container).toMatchObject({
      image: 'registry.example:5000/servicenet:v1',
      imagePullPolicy: 'Always',
    });
    expect(listAt(container, 'args')).toContain('--controllers=*,-load-balancer');
  });

  test('has the version of the package', () => {
    const manifest: unknown = JSON.parse(readFileSync('package.json', 'utf8'));
    const values: unknown = parse(readFileSync(join(chart, 'values.yaml'), 'utf8'));
    expect(at(values, 'image', 'tag')).toBe(textAt(manifest, 'version'));
  });
});
