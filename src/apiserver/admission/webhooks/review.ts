import { isRecord, isStringList, type JsonRecord, textAt } from '../../../objects/json.ts';
import type { KubeObject } from '../../../objects/meta.ts';
import { userInfo, type Authorizer } from '../../authorization/authorizer.ts';
import type { AdmissionAttributes, BodyKind } from '../../rest/admission.ts';
import type { ServedResource } from '../../rest/served-resource.ts';
import { builtinSchema } from '../../schema/builtin.ts';
import { encodeObject } from '../../schema/encode.ts';
import type { ReviewKind, ReviewVersion } from './client.ts';
import type { WebhookInvocation } from './hooks.ts';
import type { AdmissionInput } from '../../../registry/admissionregistration/expressions.ts';
import type { UserInfo } from '../../../registry/generic/strategy.ts';
import {
  serviceAccountGroups,
  serviceAccountUserName,
  withAuthenticatedGroup,
} from '../../authentication/users.ts';

/** AdmissionReview, v1 and v1beta1 (apiserver `admission/plugin/webhook/request/admissionreview.go`). */

/** The response of a webhook to an AdmissionReview. */
export interface ReviewResponse {
  readonly allowed: boolean;
  /** A Status with the reason of a refusal. */
  readonly result: JsonRecord;
  /** A JSON Patch as text; "" changes nothing. */
  readonly patch: string;
  readonly patchType: string;
  readonly warnings: readonly string[];
}

const group = 'admission.k8s.io';
const kind = 'AdmissionReview';
/** The review that asks a webhook about a write, and answers. */
export const admissionReview: ReviewKind = { group, kind, schema: 'io.k8s.api.admission.v1.AdmissionReview' };

/** The body of the request to a webhook, with the members in Go's order. */
export function reviewOf(
  { hook, resource }: WebhookInvocation,
  attributes: AdmissionAttributes,
  uid: string,
): string {
  const object = objectJson(resource, attributes.object, attributes.body);
  const oldObject = objectJson(resource, attributes.oldObject, attributes.body);
  const head = JSON.stringify({ kind, apiVersion: `${group}/${hook.reviewVersion}` }).slice(0, -1);
  const first = JSON.stringify({ uid, ...requestBeforeObjects(resource, attributes) }).slice(0, -1);
  const last = JSON.stringify(requestAfterObjects(attributes)).slice(1);
  return `${head},"request":${first},"object":${object},"oldObject":${oldObject},${last}}`;
}

/** The members of the review's `request` after `oldObject`. */
function requestAfterObjects(attributes: AdmissionAttributes): object {
  return { dryRun: attributes.dryRun, options: attributes.options ?? defaultOptions(attributes) };
}

/** The members of the review's `request` before `object`, without `uid`. */
function requestBeforeObjects(resource: ServedResource, attributes: AdmissionAttributes): object {
  const { resource: requested, subresource, operation, user, name } = attributes;
  return {
    kind: attributes.body === undefined ? kindOf(resource) : bodyKind(attributes.body),
    resource: resourceOf(resource),
    ...(subresource === '' ? {} : { subResource: subresource }),
    requestKind: attributes.body === undefined ? kindOf(requested) : bodyKind(attributes.body),
    requestResource: resourceOf(requested),
    ...(subresource === '' ? {} : { requestSubResource: subresource }),
    ...(name === '' ? {} : { name }),
    ...(namespaceOf(attributes) === '' ? {} : { namespace: namespaceOf(attributes) }),
    operation,
    userInfo: userInfo(user),
  };
}

function kindOf({ definition: { group, version, kind } }: ServedResource): object {
  return { group, version, kind };
}

function resourceOf({ definition: { group, version, plural } }: ServedResource): object {
  return { group, version, resource: plural };
}

/** The namespace of a request for a Namespace is that Namespace. */
function namespaceOf({ resource: { definition }, namespace, name }: AdmissionAttributes): string {
  if (definition.group === '' && definition.plural === 'namespaces') return name;
  return definition.namespaced ? namespace : '';
}

function defaultOptions({ operation, dryRun }: AdmissionAttributes): object | null {
  const kinds = {
    CREATE: 'CreateOptions',
    UPDATE: 'UpdateOptions',
    DELETE: 'DeleteOptions',
    CONNECT: undefined,
  };
  const kind = kinds[operation];
  if (kind === undefined) return null;
  return { kind, apiVersion: 'meta.k8s.io/v1', ...(dryRun ? { dryRun: ['All'] } : {}) };
}

function bodyKind({ group, version, kind }: BodyKind): object {
  return { group, version, kind };
}

function objectJson(resource: ServedResource, object: KubeObject | undefined, body?: BodyKind): string {
  if (object === undefined) return 'null';
  const served = servedObject(resource, object, body);
  if (body === undefined) return encodeObject(resource.schema, served);
  if (body.schema !== undefined) return encodeObject(builtinSchema(body.schema), served);
  const { kind, apiVersion, metadata: _none, ...options } = served;
  return JSON.stringify({ kind, apiVersion, ...options });
}

/** An object in its served form, with apiVersion and kind. */
export function servedObject(resource: ServedResource, object: KubeObject, body?: BodyKind): KubeObject {
  if (body !== undefined) {
    const apiVersion = body.group === '' ? body.version : `${body.group}/${body.version}`;
    return { ...object, apiVersion, kind: body.kind };
  }
  const served = resource.shared === undefined ? object : resource.shared.fromStored(object);
  return { ...served, apiVersion: resource.apiVersion, kind: resource.definition.kind };
}

/**
 * A write in the version of the resource that a webhook or policy matches (apiserver `VersionedAttributes`): unchanged
 * unless a conversion webhook converts.
 *
 * @throws {StatusError} 500 when that fails.
 */
export async function versionedFor(
  { apiVersion }: ServedResource,
  attributes: AdmissionAttributes,
): Promise<AdmissionAttributes> {
  const { resource, object, oldObject, body } = attributes;
  if (resource.conversion === undefined || resource.apiVersion === apiVersion || body !== undefined) {
    return attributes;
  }
  const convert = async (one: KubeObject | undefined): Promise<KubeObject | undefined> =>
    one === undefined ? undefined : resource.conversion?.toVersion(one, apiVersion);
  return { ...attributes, object: await convert(object), oldObject: await convert(oldObject) };
}

/** A changed object of {@link versionedFor}, in the version of the write. @throws {StatusError} 500 */
export async function requestedForm(
  { resource, body }: AdmissionAttributes,
  object: KubeObject,
): Promise<KubeObject> {
  const { conversion, apiVersion } = resource;
  return conversion === undefined || body !== undefined ? object : conversion.toVersion(object, apiVersion);
}

/**
 * The response in a review (`VerifyAdmissionResponse`).
 *
 * @throws {Error} with kube-apiserver's message when it is invalid.
 */
export function reviewResponseOf(
  review: JsonRecord,
  version: ReviewVersion,
  uid: string,
  mutating: boolean,
): ReviewResponse {
  const { response } = review;
  if (!isRecord(response)) throw new Error('webhook response was absent');
  if (version === 'v1') {
    if (response['uid'] !== uid) {
      throw new Error(
        `expected response.uid=${JSON.stringify(uid)}, got ${JSON.stringify(textAt(response['uid']))}`,
      );
    }
    const wanted = typeText(`${group}/v1`, kind);
    const got = typeText(textAt(review['apiVersion']), textAt(review['kind']));
    if (got !== wanted) throw new Error(`expected webhook response of ${wanted}, got ${got}`);
  }
  const { warnings, status } = response;
  return {
    allowed: response['allowed'] === true,
    result: isRecord(status) ? status : {},
    ...patchOf(response, version, mutating),
    warnings: isStringList(warnings) ? warnings : [],
  };
}

/** A GroupVersionKind as Go prints it. */
export function typeText(apiVersion: string, kind: string): string {
  return `${apiVersion === '' ? '/' : apiVersion}, Kind=${kind}`;
}

function patchOf(
  response: JsonRecord,
  version: ReviewVersion,
  mutating: boolean,
): { patch: string; patchType: string } {
  const patch = Buffer.from(textAt(response['patch']), 'base64').toString();
  const { patchType } = response;
  const hasType = patchType !== undefined && patchType !== null;
  if (version === 'v1beta1')
    return mutating ? { patch, patchType: 'JSONPatch' } : { patch: '', patchType: '' };
  if (!mutating) {
    if (patch !== '') throw new Error('validating webhook may not return response.patch');
    if (hasType) throw new Error('validating webhook may not return response.patchType');
    return { patch, patchType: '' };
  }
  if (patch !== '' && !hasType) throw new Error('webhook returned response.patch but not response.patchType');
  if (patch === '' && hasType) throw new Error('webhook returned response.patchType but not response.patch');
  if (patchType === '') throw new Error('webhook returned invalid response.patchType of ""');
  return { patch, patchType: textAt(patchType) };
}

/** The variables of expressions that match conditions and policies share. */
export function admissionInput(
  resource: ServedResource,
  attributes: AdmissionAttributes,
  authorizer: Authorizer,
): AdmissionInput {
  const { object, oldObject, body, user, namespace, name, subresource } = attributes;
  const { group, plural } = attributes.resource.definition;
  return {
    object: object === undefined ? null : servedObject(resource, object, body),
    oldObject: oldObject === undefined ? null : servedObject(resource, oldObject, body),
    request: { ...requestBeforeObjects(resource, attributes), ...requestAfterObjects(attributes) },
    access: ({ verb, serviceAccount, path, ...asked }) =>
      authorizer.authorize(serviceAccount === undefined ? user : accountUser(serviceAccount), {
        verb,
        path: path ?? '',
        resource: path === undefined ? asked : undefined,
      }),
    requested: {
      verb: '',
      serviceAccount: undefined,
      path: undefined,
      group,
      resource: plural,
      subresource,
      namespace,
      name,
    },
  };
}

function accountUser({ namespace, name }: { readonly namespace: string; readonly name: string }): UserInfo {
  return withAuthenticatedGroup({
    name: serviceAccountUserName(namespace, name),
    uid: '',
    groups: serviceAccountGroups(namespace),
    extra: {},
  });
}
