import { isRecord, isStringList, type JsonRecord } from '../../objects/json.ts';
import { methodNotAllowed, notFound } from '../../objects/status-errors.ts';
import { invalid, invalidObject } from '../../registry/field-errors.ts';
import type { BoundObject, ServiceAccountTokens } from '../authentication/service-account-tokens.ts';
import { encode } from '../http/encoding.ts';
import type { ResourceHandler } from '../rest/handlers.ts';
import { outputOf } from '../rest/output.ts';
import { timestamp } from '../rest/server-core.ts';
import { objectKey } from '../storage/storage.ts';
import { admitPosted } from './admit.ts';
import { readBody } from './read-body.ts';

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
    const { object: read, options } = await readBody(request, reply, kind);
    const { namespace, name } = request.info;
    const account = core.storage.get(objectKey('', 'serviceaccounts', namespace, name))?.object;
    if (account === undefined) throw notFound(resource.groupResource, name);
    const object = await admitPosted(core, resource, request, reply, {
      name,
      object: read,
      body: kind,
      options,
    });
    const spec = specOf(object);
    const { expirationSeconds, audiences, boundObjectRef } = spec;
    const seconds = typeof expirationSeconds === 'number' ? expirationSeconds : defaultSeconds;
    checkSeconds(seconds);
    const boundObject = boundObjectOf(boundObjectRef);
    const { token, expirationTimestamp } = tokens.issue({
      namespace,
      name,
      uid: account.metadata.uid ?? '',
      audiences: isStringList(audiences) ? audiences : [],
      expirationSeconds: seconds,
      ...(boundObject === undefined ? {} : { boundObject }),
    });
    const answer = {
      kind: 'TokenRequest',
      apiVersion: 'authentication.k8s.io/v1',
      metadata: { name, namespace, creationTimestamp: timestamp(core.now()) },
      spec: { ...spec, expirationSeconds: seconds },
      status: { token, expirationTimestamp },
    };
    reply.send(201, negotiated.mediaType, encode(answer, negotiated.mediaType));
  };
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

function boundObjectOf(reference: unknown): BoundObject | undefined {
  if (!isRecord(reference)) return undefined;
  const { kind: boundKind, name, uid } = reference;
  if (boundKind !== 'Pod' && boundKind !== 'Secret' && boundKind !== 'Node') return undefined;
  return typeof name === 'string'
    ? { kind: boundKind, name, uid: typeof uid === 'string' ? uid : '' }
    : undefined;
}
