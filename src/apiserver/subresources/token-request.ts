import { isRecord, isStringList, type JsonRecord, textAt } from '../../objects/json.ts';
import type { KubeObject } from '../../objects/meta.ts';
import { badRequest, conflict, methodNotAllowed, notFound } from '../../objects/status.ts';
import { invalid, invalidObject } from '../../registry/validation/field-errors.ts';
import type { BoundObject, ServiceAccountTokens } from '../authentication/service-account-tokens.ts';
import { encode } from '../http/reply.ts';
import type { ResourceHandler } from '../rest/handlers.ts';
import { matchNamespace } from '../rest/system-fields.ts';
import { outputOf } from '../rest/output.ts';
import { type ServerCore, timestamp } from '../rest/server-core.ts';
import { objectKey } from '../storage/storage.ts';
import { admitPosted, readSubresourceBody } from './admit.ts';

const schema = 'io.k8s.api.authentication.v1.TokenRequest';
const kind = { group: 'authentication.k8s.io', version: 'v1', kind: 'TokenRequest', schema };
const defaultSeconds = 3600;
const minSeconds = 600;
const maxSeconds = 2 ** 32;

/** Serves `POST serviceaccounts/<name>/token` (`kubectl create token`). */
export function tokenRequestHandler(tokens: ServiceAccountTokens): ResourceHandler {
  return async (core, resource, request, reply) => {
    if (request.method !== 'POST') throw methodNotAllowed(['POST']);
    const { negotiated } = outputOf(request, resource, 'object');
    const { object: read, options } = await readSubresourceBody(request, reply, kind);
    const { namespace, name } = request.info;
    matchNamespace(read, namespace);
    checkName(read.metadata.name ?? '', name);
    const account = core.storage.get(objectKey('', 'serviceaccounts', namespace, name))?.object;
    if (account === undefined) throw notFound(resource.groupResource, name);
    const uid = account.metadata.uid ?? '';
    checkUid(read.metadata.uid ?? '', uid, name);
    const object = await admitPosted(core, resource, request, reply, {
      name,
      object: read,
      body: kind,
      options,
    });
    const spec = specOf(object);
    const { expirationSeconds, audiences: asked, boundObjectRef } = spec;
    const seconds = typeof expirationSeconds === 'number' ? expirationSeconds : defaultSeconds;
    checkSeconds(seconds);
    if (!isWebhook(boundObjectRef)) checkAttestations(spec['attestations']);
    const boundObject = boundObjectOf(core, boundObjectRef, namespace, name);
    const audiences = isStringList(asked) && asked.length > 0 ? asked : [tokens.issuer];
    const { token, expirationTimestamp } = tokens.issue({
      namespace,
      name,
      uid,
      audiences,
      expirationSeconds: seconds,
      ...(boundObject === undefined ? {} : { boundObject }),
    });
    const answer = {
      kind: 'TokenRequest',
      apiVersion: 'authentication.k8s.io/v1',
      metadata: { name, namespace, uid, creationTimestamp: timestamp(core.now()) },
      spec: { audiences, expirationSeconds: seconds, boundObjectRef: boundObjectRef ?? null },
      status: { token, expirationTimestamp },
    };
    reply.send(201, negotiated.mediaType, encode(answer, negotiated.mediaType));
  };
}

/** @throws {StatusError} 422 */
function checkName(named: string, name: string): void {
  if (named === '' || named === name) return;
  throw invalidObject({ group: kind.group, kind: kind.kind, name }, [
    invalid('metadata.name', named, 'must match the service account name if specified'),
  ]);
}

/** @throws {StatusError} 409 */
function checkUid(asked: string, uid: string, name: string): void {
  if (asked === '' || asked === uid) return;
  throw conflict(
    { group: kind.group, resource: kind.kind },
    name,
    `the UID in the token request (${asked}) does not match the UID of the service account (${uid})`,
  );
}

function specOf(object: object): JsonRecord {
  return isRecord(object) && isRecord(object['spec']) ? object['spec'] : {};
}

function checkSeconds(seconds: number): void {
  const why =
    seconds < minSeconds
      ? 'may not specify a duration less than 10 minutes'
      : seconds > maxSeconds
        ? 'may not specify a duration larger than 2^32 seconds'
        : undefined;
  if (why === undefined) return;
  throw invalidObject({ group: 'authentication.k8s.io', kind: 'TokenRequest', name: '' }, [
    invalid('spec.expirationSeconds', seconds, why),
  ]);
}

/** @throws {StatusError} 422: only webhooks attest, and no token is bound to one. */
function checkAttestations(attestations: unknown): void {
  if (!isRecord(attestations) || Object.keys(attestations).length === 0) return;
  const detail = 'attestations may only be specified with a webhook bound object reference';
  throw invalidObject({ group: 'authentication.k8s.io', kind: 'TokenRequest', name: '' }, [
    invalid('spec.attestations', attestations, detail),
  ]);
}

/** Kinds that a token may be bound to, by their plural. */
const bindable = { Pod: 'pods', Secret: 'secrets', Node: 'nodes' } as const;

/** The object that a token ends with. @throws {StatusError} 400, 404 or 409 */
function boundObjectOf(
  core: ServerCore,
  reference: unknown,
  namespace: string,
  account: string,
): BoundObject | undefined {
  if (!isRecord(reference)) return undefined;
  const [apiVersion, boundKind, name, asked] = ['apiVersion', 'kind', 'name', 'uid'].map((key) =>
    typeof reference[key] === 'string' ? reference[key] : '',
  ) as [string, string, string, string];
  if (apiVersion.includes('/') || !isBindable(boundKind)) {
    const gv = apiVersion.includes('/') ? apiVersion : `/${apiVersion}`;
    const gate = isWebhook(reference)
      ? ' (feature gate APIServerWebhookAuthenticationToken is disabled)'
      : '';
    throw badRequest(`cannot bind token to object of type ${gv}, Kind=${boundKind}${gate}`);
  }
  const plural = bindable[boundKind];
  const key = objectKey('', plural, boundKind === 'Node' ? '' : namespace, name);
  const object: (KubeObject & { spec?: unknown }) | undefined = core.storage.get(key)?.object;
  if (object === undefined) throw notFound({ group: '', resource: plural }, name);
  if (boundKind === 'Pod' && !(isRecord(object.spec) && object.spec['serviceAccountName'] === account)) {
    throw badRequest(
      `cannot bind token for serviceaccount "${account}" to pod running with different serviceaccount name.`,
    );
  }
  const uid = object.metadata.uid ?? '';
  if (asked !== '' && asked !== uid) {
    throw conflict(
      { group: '', resource: boundKind },
      name,
      `the UID in the bound object reference (${asked}) does not match the UID in record. The object might have been deleted and then recreated`,
    );
  }
  const nodeName = boundKind === 'Pod' ? textAt(object, 'spec', 'nodeName') : '';
  if (nodeName === '') return { kind: boundKind, name, uid };
  const node = core.storage.get(objectKey('', 'nodes', '', nodeName))?.object;
  return { kind: boundKind, name, uid, node: { name: nodeName, uid: node?.metadata.uid ?? '' } };
}

/** True for a reference to the configuration of a webhook. */
function isWebhook(reference: unknown): boolean {
  if (!isRecord(reference) || reference['apiVersion'] !== 'admissionregistration.k8s.io/v1') return false;
  const { kind: name } = reference;
  return name === 'ValidatingWebhookConfiguration' || name === 'MutatingWebhookConfiguration';
}

function isBindable(name: string): name is keyof typeof bindable {
  return Object.hasOwn(bindable, name);
}
