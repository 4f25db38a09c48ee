/** The decisions of the webhooks of Kubernetes' tests (test/images/agnhost/webhook). */
import { setTimeout as delay } from 'node:timers/promises';
import { isRecord, type JsonRecord } from '../../../objects/json.ts';
import { listAt, recordAt, textAt } from '../../../objects/read.ts';

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
export async function admit(
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
