import { type FieldError, forbiddenField, invalid, notSupported, required } from '../field-errors.ts';
import { isDNS1035Label } from '../names.ts';
import { validateClientConfig } from '../webhookconfiguration/client-config.ts';
import type { CustomResourceConversion } from './definition.ts';

const path = 'spec.conversion';
/** The ConversionReview versions of which a webhook must know one. */
const reviewVersions = ['v1', 'v1beta1'];

/**
 * The rules of `spec.conversion` (apiextensions `validateCustomResourceConversion`; its paths are those of the
 * internal type). What would be a valid webhook is refused: this server converts no objects.
 */
export function validateConversion(conversion: CustomResourceConversion | undefined): FieldError[] {
  const { strategy, webhook } = conversion ?? { strategy: 'None' };
  const { clientConfig, conversionReviewVersions } = webhook ?? {};
  // An empty list of clients arrives as null, as Go keeps it.
  const versions = conversionReviewVersions ?? [];
  if (strategy === 'Webhook') {
    const errors = [
      ...(clientConfig === undefined
        ? [required(`${path}.webhookClientConfig`, 'required when strategy is set to Webhook')]
        : validateClientConfig(clientConfig, `${path}.webhookClientConfig`)),
      ...validateReviewVersions(versions),
    ];
    if (errors.length > 0) return errors;
    return [forbiddenField(`${path}.strategy`, 'this server converts between versions by "None" only')];
  }
  const errors: FieldError[] = [];
  if (strategy === '') errors.push(required(`${path}.strategy`));
  else if (strategy !== 'None') {
    errors.push(notSupported(`${path}.strategy`, strategy, ['None', 'Webhook']));
  }
  const detail = 'should not be set when strategy is not set to Webhook';
  if (clientConfig !== undefined) errors.push(forbiddenField(`${path}.webhookClientConfig`, detail));
  if (versions.length > 0) errors.push(forbiddenField(`${path}.conversionReviewVersions`, detail));
  return errors;
}

function validateReviewVersions(versions: readonly string[]): FieldError[] {
  const at = `${path}.conversionReviewVersions`;
  if (versions.length === 0) return [required(at)];
  const errors = versions.flatMap((version, i) =>
    versions.indexOf(version) < i
      ? [invalid(`${at}[${i}]`, version, 'duplicate version')]
      : isDNS1035Label(version).map((message) => invalid(`${at}[${i}]`, version, message)),
  );
  if (!versions.some((version) => reviewVersions.includes(version))) {
    errors.push(invalid(at, versions, `must include at least one of ${reviewVersions.join(', ')}`));
  }
  return errors;
}
