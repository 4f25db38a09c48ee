import { WrongValue } from './errors.ts';
import { texts } from './flags.ts';

/** A port of 127.0.0.1 that leads to a port of a Service. */
export interface PublishedPort {
  readonly port: number;
  readonly namespace: string;
  readonly service: string;
  /** A number or a name. */
  readonly servicePort: string;
}

/** Reads `--publish`: `8080:shop/storefront:80`. */
export function publishedPorts(value: unknown): readonly PublishedPort[] {
  return texts(value).map((text) => {
    const [, port = '', namespace = '', service = '', servicePort = ''] =
      /^(\d{1,5}):([a-z0-9-]+)\/([a-z0-9-]+):([a-z0-9-]+)$/.exec(text) ?? [];
    if (servicePort === '' || Number(port) === 0 || Number(port) > 65535) {
      throw new WrongValue(`"${text}" must be like 8080:shop/storefront:80`);
    }
    return { port: Number(port), namespace, service, servicePort };
  });
}
