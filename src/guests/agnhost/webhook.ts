import { setTimeout as delay } from 'node:timers/promises';
import { isRecord, type JsonRecord, listAt, recordAt, textAt } from '../../objects/json.ts';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { httpsServer } from '../../host/http-server.ts';
import type { AgnhostRun } from './context.ts';

/** The `response` of an AdmissionReview, without its uid. */
type AdmissionResponse = JsonRecord & { readonly allowed: boolean };

const allow: AdmissionResponse = { allowed: true };

function deny(message: string): AdmissionResponse {
  return { allowed: false, status: { message } };
}

function patched(operations: readonly JsonRecord[]): AdmissionResponse {
  if (operations.length === 0) return allow;
  const patch = Buffer.from(JSON.stringify(operations)).toString('base64');
  return { allowed: true, patchType: 'JSONPatch', patch };
}

/** The decision of a path; undefined for one that there is not. */
async function admit(
  path: string,
  request: JsonRecord,
  { sidecarImage }: { readonly sidecarImage: string },
): Promise<AdmissionResponse | undefined> {
  const isDelete = request['operation'] === 'DELETE';
  const object = recordAt(request, isDelete ? 'oldObject' : 'object');
  const data = recordAt(object, 'data');
  const unwanted = data['webhook-e2e-test'];
  const label = textAt(object, 'metadata', 'labels', 'webhook-e2e-test');
  switch (path) {
    case '/always-allow-delay-5s':
      await delay(5000);
      return { allowed: true, status: { message: 'this webhook allows all requests' } };
    case '/always-deny':
      return deny('this webhook denies all requests');
    case '/add-label':
      return patched(addLabel(object));
    case '/pods':
      if (label === 'wait-forever') return await new Promise(() => undefined);
      return admitPod(object, label);
    case '/pods/attach':
      return textAt(request, 'name') === 'to-be-attached-pod'
        ? deny("attaching to pod 'to-be-attached-pod' is not allowed")
        : allow;
    case '/mutating-pods':
      return patched(
        textAt(object, 'metadata', 'name') === 'webhook-to-be-mutated' ? [addInitContainer] : [],
      );
    case '/mutating-pods-sidecar':
      return patched([
        {
          op: 'add',
          path: '/spec/containers/-',
          value: { image: sidecarImage, name: 'webhook-added-sidecar', resources: {} },
        },
      ]);
    case '/configmaps':
      return admitData(unwanted, isDelete, 'configmap');
    case '/custom-resource':
      return admitData(unwanted, isDelete, 'custom resource');
    case '/mutating-configmaps':
    case '/mutating-custom-resource':
      return patched(stages(data));
    case '/crd':
      return label === 'webhook-disallow' ? deny('the crd contains unwanted label') : allow;
    default:
      return undefined;
  }
}

const addInitContainer = {
  op: 'add',
  path: '/spec/initContainers',
  value: [{ image: 'webhook-added-image', name: 'webhook-added-init-container', resources: {} }],
};

function addLabel(object: JsonRecord): readonly JsonRecord[] {
  const { metadata } = object;
  const labels = isRecord(metadata) ? metadata['labels'] : undefined;
  if (!isRecord(labels)) return [{ op: 'add', path: '/metadata/labels', value: { 'added-label': 'yes' } }];
  return labels['added-label'] === 'yes'
    ? []
    : [{ op: 'add', path: '/metadata/labels/added-label', value: 'yes' }];
}

function admitPod(object: JsonRecord, label: string): AdmissionResponse {
  const reasons: string[] = [];
  if (label === 'webhook-disallow') reasons.push('the pod contains unwanted label;');
  const names = listAt(object, 'spec', 'containers').map((container) => textAt(container, 'name'));
  if (names.some((name) => name.includes('webhook-disallow'))) {
    reasons.push('the pod contains unwanted container name;');
  }
  return reasons.length === 0 ? allow : deny(reasons.join(' '));
}

function admitData(value: unknown, isDelete: boolean, kind: string): AdmissionResponse {
  if (value === 'webhook-disallow') {
    return deny(
      kind === 'configmap'
        ? 'the configmap contains unwanted key and value'
        : 'the custom resource contains unwanted data',
    );
  }
  if (isDelete && value === 'webhook-nondeletable') {
    return deny(`the ${kind} cannot be deleted because it contains unwanted key and value`);
  }
  return allow;
}

function stages(data: JsonRecord): readonly JsonRecord[] {
  const add = (stage: number): JsonRecord => ({
    op: 'add',
    path: `/data/mutation-stage-${stage}`,
    value: 'yes',
  });
  return [
    ...(data['mutation-start'] === 'yes' ? [add(1)] : []),
    ...(data['mutation-stage-1'] === 'yes' ? [add(2)] : []),
  ];
}

/** `agnhost webhook`: the webhooks of Kubernetes' tests (test/images/agnhost/webhook), by TLS. @throws the system's error. */
export async function webhook(run: AgnhostRun): Promise<void> {
  const { args } = run;
  await serve(run, args.number('port', 443), async (path, review) => {
    const request = recordAt(review, 'request');
    const response = await admit(path, request, { sidecarImage: args.text('sidecar-image') });
    if (response === undefined) return undefined;
    return { ...review, request: undefined, response: { uid: request['uid'], ...response } };
  });
}

/** `agnhost crd-conversion-webhook`: converts between `v1`, with `hostPort`, and `v2`, with `host` and `port`. @throws the system's error. */
export async function conversionWebhook(run: AgnhostRun): Promise<void> {
  await serve(run, run.args.number('port', 443), (path, review) => {
    if (path !== '/crdconvert') return Promise.resolve(undefined);
    const request = recordAt(review, 'request');
    const wanted = String(request['desiredAPIVersion']);
    const objects: readonly unknown[] = Array.isArray(request['objects']) ? request['objects'] : [];
    const converted = objects.map((object) => convert(isRecord(object) ? object : {}, wanted));
    const response = { uid: request['uid'], convertedObjects: converted, result: { status: 'Success' } };
    return Promise.resolve({ ...review, request: undefined, response });
  });
}

function convert(object: JsonRecord, wanted: string): JsonRecord {
  const { hostPort, host, port, ...rest } = object;
  const version = wanted.slice(wanted.indexOf('/') + 1);
  if (object['apiVersion'] === wanted) return object;
  if (version === 'v2' && typeof hostPort === 'string') {
    const [first = '', second = ''] = hostPort.split(':');
    return { ...rest, apiVersion: wanted, host: first, port: second };
  }
  if (version === 'v1' && typeof host === 'string' && typeof port === 'string') {
    return { ...rest, apiVersion: wanted, hostPort: `${host}:${port}` };
  }
  return { ...object, apiVersion: wanted };
}

type Answer = (path: string, review: JsonRecord) => Promise<JsonRecord | undefined>;

async function serve(run: AgnhostRun, port: number, answer: Answer): Promise<void> {
  const { args, container } = run;
  const cert = await container.readFile(args.text('tls-cert-file'));
  const key = await container.readFile(args.text('tls-private-key-file'));
  await run.listen(port, () =>
    httpsServer({ cert, key }, (request, response, { pathname }) =>
      handle(pathname, request, response, answer).catch((error: unknown) => {
        container.write('stderr', `${String(error)}\n`);
        throw error;
      }),
    ),
  );
}

async function handle(
  path: string,
  request: IncomingMessage,
  response: ServerResponse,
  answer: Answer,
): Promise<void> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) if (Buffer.isBuffer(chunk)) chunks.push(chunk);
  if (path === '/readyz') {
    response.end('ok');
    return;
  }
  const review: unknown = JSON.parse(Buffer.concat(chunks).toString());
  const said = isRecord(review) ? await answer(path, review) : undefined;
  if (said === undefined) response.writeHead(404).end('404 page not found\n');
  else response.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify(said));
}
