import type { WebhookClientConfig } from '../../objects/types/admissionregistration.generated.ts';
import { type FieldError, invalid, required } from './field-errors.ts';
import { isValidPortNumber } from './network.ts';

/** Either a URL or a Service (`webhook.ValidateWebhookURL`, `ValidateWebhookService`). */
export function validateClientConfig(config: WebhookClientConfig, path: string): FieldError[] {
  const { url, service } = config;
  if ((url === undefined) === (service === undefined)) {
    return [required(path, 'exactly one of url or service is required')];
  }
  if (url !== undefined) return validateUrl(url, `${path}.url`);
  const { namespace = '', name = '', port = 443, path: servicePath } = service ?? {};
  const errors: FieldError[] = [];
  if (name === '') errors.push(required(`${path}.service.name`, 'service name is required'));
  if (namespace === '') errors.push(required(`${path}.service.namespace`, 'service namespace is required'));
  for (const message of isValidPortNumber(port)) {
    errors.push(invalid(`${path}.service.port`, port, `port is not valid: ${message}`));
  }
  if (servicePath !== undefined && !servicePath.startsWith('/')) {
    errors.push(invalid(`${path}.service.path`, servicePath, "must start with a '/'"));
  }
  return errors;
}

function validateUrl(url: string, path: string): FieldError[] {
  const form = '; desired format: https://host[/path]';
  if (!URL.canParse(url)) {
    return [
      required(path, `url must be a valid URL: parse ${JSON.stringify(url)}: invalid URI for request${form}`),
    ];
  }
  const { protocol, host, username, password, hash, search } = new URL(url);
  const errors: FieldError[] = [];
  const wrong = (value: string, detail: string) => errors.push(invalid(path, value, detail));
  if (protocol !== 'https:') wrong(protocol.slice(0, -1), `'https' is the only allowed URL scheme${form}`);
  if (host === '') wrong(host, `host must be specified${form}`);
  if (username !== '' || password !== '') wrong(username, 'user information is not permitted in the URL');
  if (hash !== '') wrong(hash.slice(1), 'fragments are not permitted in the URL');
  if (search !== '') wrong(search.slice(1), 'query parameters are not permitted in the URL');
  return errors;
}
