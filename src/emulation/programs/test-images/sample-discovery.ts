/** The discovery documents of the sample API server. */
export const group = 'wardle.example.com';
const version = 'v1alpha1';
export const groupVersion = `${group}/${version}`;

export interface SampleResource {
  readonly plural: string;
  readonly kind: string;
  readonly namespaced: boolean;
}

export const sampleResources: readonly SampleResource[] = [
  { plural: 'fischers', kind: 'Fischer', namespaced: false },
  { plural: 'flunders', kind: 'Flunder', namespaced: true },
];

const verbs = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'];
const named = { groupVersion, version };
const description = { name: group, versions: [named], preferredVersion: named };

const openApi3 = `/openapi/v3/apis/${groupVersion}`;

const documents: ReadonlyMap<string, unknown> = new Map<string, unknown>([
  ['/apis', { kind: 'APIGroupList', apiVersion: 'v1', groups: [description] }],
  [`/apis/${group}`, { kind: 'APIGroup', apiVersion: 'v1', ...description }],
  [
    `/apis/${groupVersion}`,
    {
      ...{ kind: 'APIResourceList', apiVersion: 'v1', groupVersion },
      resources: sampleResources.map(({ plural: name, kind, namespaced }) => ({
        ...{ name, singularName: kind.toLowerCase(), namespaced, kind, verbs },
      })),
    },
  ],
  ['/openapi/v3', { paths: { [`apis/${groupVersion}`]: { serverRelativeURL: openApi3 } } }],
  [
    openApi3,
    {
      ...{ openapi: '3.0.0', info: { title: 'sample-apiserver', version }, paths: {} },
      components: { schemas: Object.fromEntries(sampleResources.map(schemaOf)) },
    },
  ],
  [
    '/openapi/v2',
    {
      ...{ swagger: '2.0', info: { title: 'sample-apiserver', version }, paths: {} },
      definitions: Object.fromEntries(sampleResources.map(schemaOf)),
    },
  ],
]);

function schemaOf({ kind }: SampleResource): readonly [name: string, schema: object] {
  const text = { type: 'string' };
  const properties = { apiVersion: text, kind: text, metadata: { type: 'object' }, spec: { type: 'object' } };
  const names = [{ group, version, kind }];
  return [
    `io.k8s.sample-apiserver.pkg.apis.wardle.${version}.${kind}`,
    { type: 'object', properties, 'x-kubernetes-group-version-kind': names },
  ];
}

/** The document at a path; undefined where there is none. */
export function discoveryDocument(path: string): unknown {
  return documents.get(path);
}
