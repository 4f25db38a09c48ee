import { isRecord, isStringList, type JsonRecord } from '../../../objects/json.ts';
import { pushAll } from '../../../objects/lists.ts';
import {
  type FieldError,
  invalid,
  invalidObject,
  notSupported,
} from '../../../registry/validation/field-errors.ts';
import type { ApiRequest } from '../../http/exchange.ts';
import { bodyMediaType } from '../../http/media-types.ts';
import { decodeDeleteOptions } from '../../schema/decode-options.ts';
import { booleanParameter, integerParameter } from './query.ts';
import { dryRunErrors } from './write-options.ts';

/** DeleteOptions (meta/v1), checked. */
export interface CheckedDeleteOptions {
  readonly gracePeriodSeconds: number | undefined;
  readonly preconditions: { readonly uid?: string; readonly resourceVersion?: string };
  readonly orphanDependents: boolean | undefined;
  readonly propagationPolicy: string | undefined;
  readonly dryRun: boolean;
}

interface RawDeleteOptions {
  gracePeriodSeconds: number | undefined;
  preconditions: { uid?: string; resourceVersion?: string };
  orphanDependents: boolean | undefined;
  propagationPolicy: string | undefined;
  dryRun: string[];
}

/**
 * Reads the options of a delete from its body, or from the query when there is none.
 *
 * @throws {StatusError} 400 for a body of another kind or with wrong types, 415 for one of another media type, 422
 * for options that do not hold.
 */
export async function deleteOptions(request: ApiRequest): Promise<CheckedDeleteOptions> {
  const bytes = await request.body();
  const raw =
    bytes.length === 0
      ? optionsOfQuery(request.query)
      : optionsOfBody(decodeDeleteOptions(bytes, bodyMediaType(request.headers['content-type'])));
  const errors: FieldError[] = [];
  const { propagationPolicy, orphanDependents } = raw;
  if (propagationPolicy !== undefined && orphanDependents !== undefined) {
    errors.push(
      invalid(
        'propagationPolicy',
        propagationPolicy,
        'orphanDependents and deletionPropagation cannot be both set',
      ),
    );
  }
  if (
    propagationPolicy !== undefined &&
    !['Foreground', 'Background', 'Orphan'].includes(propagationPolicy)
  ) {
    errors.push(
      notSupported('propagationPolicy', propagationPolicy, ['Foreground', 'Background', 'Orphan', 'nil']),
    );
  }
  pushAll(errors, dryRunErrors(raw.dryRun));
  if (errors.length > 0)
    throw invalidObject({ group: 'meta.k8s.io', kind: 'DeleteOptions', name: '' }, errors);
  return { ...raw, dryRun: raw.dryRun.length > 0 };
}

/** The options as a DeleteOptions object, for webhooks. */
export function deleteOptionsObject(options: CheckedDeleteOptions): Record<string, unknown> {
  const { gracePeriodSeconds, preconditions, orphanDependents, propagationPolicy, dryRun } = options;
  return {
    kind: 'DeleteOptions',
    apiVersion: 'meta.k8s.io/v1',
    ...(gracePeriodSeconds === undefined ? {} : { gracePeriodSeconds }),
    ...(Object.keys(preconditions).length === 0 ? {} : { preconditions }),
    ...(orphanDependents === undefined ? {} : { orphanDependents }),
    ...(propagationPolicy === undefined ? {} : { propagationPolicy }),
    ...(dryRun ? { dryRun: ['All'] } : {}),
  };
}

function optionsOfQuery(query: URLSearchParams): RawDeleteOptions {
  return {
    gracePeriodSeconds: integerParameter(query, 'gracePeriodSeconds'),
    preconditions: {},
    orphanDependents: booleanParameter(query, 'orphanDependents'),
    propagationPolicy: query.get('propagationPolicy') ?? undefined,
    dryRun: query.getAll('dryRun'),
  };
}

/** The fields arrive typed: the decoder has refused everything else. */
function optionsOfBody(body: JsonRecord): RawDeleteOptions {
  const { gracePeriodSeconds, orphanDependents, propagationPolicy, dryRun } = body;
  const preconditions = isRecord(body['preconditions']) ? body['preconditions'] : {};
  const { uid, resourceVersion } = preconditions;
  return {
    gracePeriodSeconds: typeof gracePeriodSeconds === 'number' ? gracePeriodSeconds : undefined,
    preconditions: {
      ...(typeof uid === 'string' ? { uid } : {}),
      ...(typeof resourceVersion === 'string' ? { resourceVersion } : {}),
    },
    orphanDependents: typeof orphanDependents === 'boolean' ? orphanDependents : undefined,
    propagationPolicy: typeof propagationPolicy === 'string' ? propagationPolicy : undefined,
    dryRun: isStringList(dryRun) ? dryRun : [],
  };
}
