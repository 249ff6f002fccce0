//! The value of an expression.

use std::sync::Arc;

use super::arithmetic::{binary, character, literal, sum_origin};
use super::interpreter::{Interpreter, well_known};
use super::lexer::Token;
use super::objects::{TOO_MANY, is_vector};
use super::parser::{Names, Parser, Text};
use super::places::Part;
use super::program::Program;
use super::sites::callee_name;
use super::tree::{Expression, ExpressionKind, Name, Operator, TemplateArgument};
use super::types::{BIT_FIELD, Base, SIZE, Type};
use super::value::{Data, Value, real};

/// Why an expression has no value that is nested deeper than is followed.
const TOO_TALL: &str = "is nested too deep to work out";

/// Arguments of one call, and values of one pack, that are looked at.
const MOST_ARGUMENTS: usize = 4096;

/// The value of an integer expression without names, as `#if` has them.
pub fn constant(tokens: &[Token]) -> Option<i128> {
    let text = Text::new(tokens.to_vec());
    let names = Names::default();
    let mut parser = Parser::new(&text, &names, 0, text.tokens.len());
    let expression = parser.expression().filter(|_| parser.at == parser.end)?;
    let program = Program::default();
    Interpreter::new(&program).evaluate(&expression).as_integer()
}

impl Interpreter<'_> {
    /// The value of an expression; side effects on known variables happen.
    pub fn evaluate(&mut self, expression: &Expression) -> Value {
        if !self.enter_node() {
            return self.unknown(expression, "takes too long to work out");
        }
        let value = self.evaluate_kind(expression);
        self.nesting -= 1;
        value
    }

    fn evaluate_kind(&mut self, expression: &Expression) -> Value {
        match &expression.kind {
            ExpressionKind::Number(text) => literal(text).unwrap_or_else(|| self.unknown(expression, "is no number")),
            ExpressionKind::Character(text) => {
                character(text).unwrap_or_else(|| self.unknown(expression, "is no single character"))
            }
            ExpressionKind::Name(_)
            | ExpressionKind::Member(..)
            | ExpressionKind::Index(..)
            | ExpressionKind::Unary('*' | '&', _) => {
                let found = self.find_part(expression);
                let value = self.value_of(found, expression);
                // Of any device's properties: all have the same.
                let is_same = |value: &Value| value.as_unknown().is_some() && is_warp_size(expression);
                if is_same(&value) { well_known("warpSize").unwrap_or(value) } else { value }
            }
            ExpressionKind::Unary(sign, inner) => self.unary(*sign, inner, expression),
            ExpressionKind::Step { by, before, place } => self.step(*by, *before, place, expression),
            ExpressionKind::Binary(operator, left, right) => self.binary(*operator, left, right, expression),
            ExpressionKind::Assign(operator, left, right) => self.assign(*operator, left, right, expression),
            ExpressionKind::Conditional(condition, then, otherwise) => self.conditional(condition, then, otherwise),
            ExpressionKind::Comma(items) => {
                let values: Vec<Value> = items.iter().map(|item| self.evaluate(item)).collect();
                values.into_iter().next_back().unwrap_or_else(|| self.unknown(expression, "has no value"))
            }
            ExpressionKind::Cast(kind, inner) => {
                let value = self.evaluate(inner);
                let kind = self.resolved(kind);
                self.coerced(value, &kind)
            }
            ExpressionKind::Construct(kind, items) => self.construct_expression(kind, items),
            ExpressionKind::Braces(items) => {
                let mut list = Vec::new();
                for (name, item) in items.iter().take(MOST_ARGUMENTS) {
                    match &item.kind {
                        ExpressionKind::Spread(_) => {
                            let values = self.spread(std::slice::from_ref(item));
                            list.extend(values.into_iter().map(|value| (None, value.copied())));
                        }
                        _ => list.push((name.clone(), self.evaluate(item).copied())),
                    }
                }
                Data::List(list).into()
            }
            ExpressionKind::Call(callee, arguments) => self.call(callee, arguments, expression),
            ExpressionKind::SizeOfType(kind) => {
                let size = self.size_of(kind, 0);
                size.map_or_else(|| self.unknown(expression, "is the size of an unknown type"), sized)
            }
            ExpressionKind::SizeOf(inner) => self.size_of_value(inner, expression),
            ExpressionKind::Lambda(lambda) => self.lambda_value(lambda),
            ExpressionKind::Spread(inner) => self.evaluate(inner),
            ExpressionKind::Known(value) => (**value).clone(),
            ExpressionKind::TooTall => {
                self.forget_effects(expression, TOO_TALL);
                self.unknown(expression, TOO_TALL)
            }
            ExpressionKind::Opaque if self.program.text.is(expression.at.start, "delete") => {
                self.forget_held(None);
                self.unknown(expression, "has no value that the text gives")
            }
            ExpressionKind::Launch(_) | ExpressionKind::Text | ExpressionKind::Opaque => {
                self.unknown(expression, "has no value that the text gives")
            }
        }
    }

    /// The values of arguments, each pack among them as the values that it stands for.
    pub fn spread(&mut self, arguments: &[Expression]) -> Vec<Value> {
        let mut values = Vec::new();
        for argument in arguments.iter().take(MOST_ARGUMENTS) {
            if let ExpressionKind::Spread(pattern) = &argument.kind
                && let Some(each) = self.spread_pattern(pattern)
            {
                values.extend(each);
                continue;
            }
            let value = self.evaluate(argument);
            let count = match (&argument.kind, &value.data) {
                (ExpressionKind::Spread(_), Data::List(items)) => {
                    items.len().min(MOST_ARGUMENTS.saturating_sub(values.len()))
                }
                _ => {
                    values.push(value);
                    continue;
                }
            };
            self.spend(u32::try_from(count).unwrap_or(u32::MAX));
            for index in 0..count {
                let part = self.part(&value, index);
                values.push(part.unwrap_or_else(|| self.unknown(argument, "is not known from the text")));
            }
        }
        values
    }

    fn construct_expression(&mut self, kind: &Type, items: &[Expression]) -> Value {
        let kind = self.resolved(kind);
        if let [Expression { kind: ExpressionKind::Braces(items), .. }] = items {
            return self.constructed(&kind, items);
        }
        let values = self.spread(items);
        if is_vector(&kind) {
            return self.vector(&kind, values.into_iter().map(Value::copied).collect());
        }
        match (&kind.base, values.len()) {
            (Base::Named(_), _) => {
                let list = values.into_iter().map(|value| (None, value)).collect();
                self.coerced(Data::List(list).into(), &kind)
            }
            (_, 0) => Value::int(0).converted(&kind),
            _ => values.into_iter().next().map_or_else(|| Value::int(0), |value| value.converted(&kind)),
        }
    }

    fn unary(&mut self, sign: char, inner: &Expression, expression: &Expression) -> Value {
        let value = self.evaluate(inner);
        if sign == '+' || value.as_unknown().is_some() {
            return Value { place: None, ..value };
        }
        let zero = Value::int(0);
        let result = match sign {
            '-' => match value.data {
                Data::Float { value, single } => Some(real(-value, single)),
                _ => binary(Operator::Subtract, &zero, &value),
            },
            '!' => value.condition().map(|holds| Value::boolean(!holds)),
            '~' => binary(Operator::BitXor, &value, &Value::int(-1)),
            _ => None,
        };
        result.unwrap_or_else(|| self.unknown(expression, "has no value that the text gives"))
    }

    fn binary(&mut self, operator: Operator, left: &Expression, right: &Expression, whole: &Expression) -> Value {
        let left_value = self.evaluate(left);
        match (operator, left_value.condition()) {
            (Operator::And, Some(false)) => return Value::boolean(false),
            (Operator::Or, Some(true)) => return Value::boolean(true),
            _ => {}
        }
        let right_value = self.evaluate(right);
        if operator == Operator::ShiftRight && left_value.as_float().is_none() {
            // `std::cin >> size`
            self.forget_lvalue(right, "is read when the program runs");
        }
        if matches!(operator, Operator::ShiftLeft | Operator::ShiftRight)
            && matches!(left_value.data, Data::Object { .. })
        {
            // `config << 32`: an operator of the struct's own.
            self.forget_lvalue(left, "is changed by an operator that the grader does not follow");
        }
        if let Some(value) = self.own_operator(operator, &left_value, &right_value, whole) {
            return value;
        }
        match (operator, left_value.address, right_value.as_integer()) {
            // A pointer that leads somewhere is no nullptr.
            (Operator::Equal, true, Some(0)) => Value::boolean(false),
            (Operator::Unequal, true, Some(0)) => Value::boolean(true),
            (_, address, _) if address || right_value.address => {
                self.unknown(whole, "has no value that the text gives")
            }
            _ => self.combined(operator, &left_value, &right_value, whole),
        }
    }

    fn combined(&mut self, operator: Operator, left: &Value, right: &Value, whole: &Expression) -> Value {
        if let Some(unknown) = left.as_unknown().or(right.as_unknown()) {
            return Data::Unknown(unknown.clone()).into();
        }
        let by_zero = matches!(operator, Operator::Divide | Operator::Remainder) && right.as_integer() == Some(0);
        let why = if by_zero { "divides by zero" } else { "has no value that the text gives" };
        match binary(operator, left, right) {
            Some(value) => Value { origin: sum_origin(operator, left, right, &value), ..value },
            None => self.unknown(whole, why),
        }
    }

    fn conditional(&mut self, condition: &Expression, then: &Expression, otherwise: &Expression) -> Value {
        let condition = self.evaluate(condition);
        match condition.condition() {
            Some(true) => self.evaluate(then),
            Some(false) => self.evaluate(otherwise),
            None => {
                let (then, otherwise) = (self.evaluate(then), self.evaluate(otherwise));
                let same = then.as_integer().is_some() && then.as_integer() == otherwise.as_integer();
                if same { then } else { condition.data.into() }
            }
        }
    }

    fn step(&mut self, by: i8, before: bool, place: &Expression, whole: &Expression) -> Value {
        let found = self.find(place);
        if let Some(stepped) = self.call_operator(if by > 0 { "operator++" } else { "operator--" }, &found, &[], whole)
        {
            return stepped;
        }
        let old = self.value_of(found.clone(), place);
        if old.address {
            self.forget_lvalue(place, "is a pointer that moves");
            return self.unknown(whole, "has no value that the text gives");
        }
        let new = self.combined(Operator::Add, &old, &Value::int(i128::from(by)), whole);
        self.store(&found, new.clone(), place);
        if before { new } else { Value { place: None, ..old } }
    }

    fn assign(
        &mut self,
        operator: Option<Operator>,
        left: &Expression,
        right: &Expression,
        whole: &Expression,
    ) -> Value {
        if operator.is_none() && self.program.functions.iter().any(|function| &*function.name == "operator=") {
            let found = self.find(left);
            let right = std::slice::from_ref(right);
            if let Some(assigned) = self.call_operator("operator=", &found, right, whole) {
                return assigned;
            }
        }
        let right = self.evaluate(right);
        if let (None, ExpressionKind::Call(callee, places)) = (operator, &left.kind)
            && callee_name(callee) == Some("tie")
        {
            self.store_tied(places, &right);
            return right;
        }
        let found = self.find(left);
        let value = match operator {
            None => right,
            Some(operator) => {
                let old = self.value_of(found.clone(), left);
                if old.address {
                    self.forget_lvalue(left, "is a pointer that moves");
                    return self.unknown(whole, "has no value that the text gives");
                }
                self.combined(operator, &old, &right, whole)
            }
        };
        self.store(&found, value, left);
        self.value_of(found, left)
    }

    /// `std::tie(a, b) = value`
    fn store_tied(&mut self, places: &[Expression], value: &Value) {
        for (index, place) in places.iter().enumerate() {
            let part = self.part(value, index).unwrap_or_else(|| self.unknown(place, "is not known from the text"));
            let found = self.find(place);
            self.store(&found, part, place);
        }
    }

    /// One of the values that an object or list is made of, in order.
    pub fn part(&mut self, whole: &Value, index: usize) -> Option<Value> {
        let (part, raw) = match &whole.data {
            Data::Object { members, .. } => {
                let (name, value) = members.get(index)?;
                (Part::Member(name.clone()), value.clone())
            }
            Data::List(items) => (Part::Item(index), items.get(index)?.1.clone()),
            _ => return None,
        };
        match (&whole.place, part) {
            (Some(place), part) => {
                let place = self.pointee(place).with(part);
                self.loaded(&place, 0)
            }
            (None, Part::Member(name)) => self.member_value(whole, &name),
            (None, Part::Item(_)) => self.followed(raw),
        }
    }

    /// A member of a value that is kept nowhere.
    pub fn member_of(&mut self, object: &Value, member: &Arc<str>, whole: &Expression) -> Value {
        if let Data::Unknown(unknown) = &object.data {
            return match unknown.why {
                "has no value yet" | "is not declared in heat.cu" => self.unknown(whole, "is not known from the text"),
                _ => Data::Unknown(unknown.clone()).into(),
            };
        }
        let value = self.member_value(object, member).or_else(|| {
            let kind = super::instances::type_of_object(object)?;
            self.read_member_of(&kind, member, whole)
        });
        value.unwrap_or_else(|| self.unknown(whole, "is not known from the text"))
    }

    /// Bytes of a type.
    fn size_of(&mut self, kind: &Type, depth: u32) -> Option<i128> {
        let kind = self.resolved(kind);
        if !kind.pointers.is_empty() {
            return Some(8);
        }
        match &kind.base {
            Base::Bool => Some(1),
            Base::Integer { spelling: BIT_FIELD, .. } => None,
            Base::Integer { bits, .. } => Some(i128::from(bits / 8)),
            Base::Float => Some(4),
            Base::Double => Some(8),
            Base::Void | Base::Auto => None,
            Base::Named(name) => match &**name {
                "float2" | "int2" | "uint2" => Some(8),
                "float3" | "int3" | "uint3" | "dim3" => Some(12),
                "float4" | "int4" | "uint4" => Some(16),
                "half" | "__half" | "__nv_bfloat16" => Some(2),
                _ => self.size_of_struct(name, depth),
            },
        }
    }

    fn size_of_struct(&mut self, name: &str, depth: u32) -> Option<i128> {
        if depth > 8 || self.fuel == 0 {
            return None;
        }
        self.spend(1);
        let program = self.program;
        let found = program.structs.get(name.rsplit("::").next()?)?;
        let members = &found.members;
        let (mut size, mut alignment) = (0i128, 1i128);
        for member in members.iter().take(64) {
            let each = self.size_of(&member.kind, depth + 1)?;
            let mut count = 1i128;
            for length in &member.dimensions {
                count = count.checked_mul(self.evaluate(length.as_ref()?).as_integer()?)?;
            }
            let align = each.clamp(1, 8);
            alignment = alignment.max(align);
            let bytes = each.checked_mul(count)?;
            size = if found.union { size.max(bytes) } else { rounded_up(size, align).checked_add(bytes)? };
        }
        Some(rounded_up(size, alignment))
    }

    fn size_of_value(&mut self, inner: &Expression, whole: &Expression) -> Value {
        let found = self.find(inner);
        let kind = found.place().and_then(|place| self.declared_at(&place)).map(|(_, kind)| self.resolved(&kind));
        let value = self.value_of(found, inner);
        let each = match (&value.data, kind) {
            _ if value.address => Some(8),
            (Data::Unknown(unknown), _) if unknown.why == TOO_MANY => None,
            (Data::List(_), kind) => {
                let items = leaves(&value);
                let each = match (kind, items.first().map(|item| &item.data)) {
                    (Some(kind), _) => self.size_of(&kind, 0),
                    (None, Some(Data::Integer { bits, .. })) => Some(i128::from((bits / 8).max(1))),
                    (None, Some(Data::Float { single, .. })) => Some(if *single { 4 } else { 8 }),
                    _ => None,
                };
                each.map(|each| each * items.len() as i128)
            }
            (Data::Integer { bits, .. }, _) => Some(i128::from((bits / 8).max(1))),
            (Data::Float { single, .. }, _) => Some(if *single { 4 } else { 8 }),
            (_, Some(kind)) => self.size_of(&kind, 0),
            _ => None,
        };
        each.map_or_else(|| self.unknown(whole, "is the size of an unknown type"), sized)
    }

    /// The kernel or function that a name means, its template arguments worked out.
    pub fn function_value(&mut self, name: &Name) -> Option<Value> {
        let program = self.program;
        let meant = program.functions_meant(&name.path, &self.path_here());
        let mut named = meant.into_iter().filter(|(_, function)| !function.specialisation);
        let first = named.next()?;
        // Of a declaration and a definition, the one with the body.
        let (index, _) = std::iter::once(first).chain(named).find(|(_, f)| f.body.is_some()).unwrap_or(first);
        let arguments = name.arguments.as_ref().map(|list| list.iter().map(|a| self.template_argument(a)).collect());
        Some(Data::Function { index, arguments }.into())
    }

    /// A template argument as a call from the end of the file can spell it.
    pub fn template_argument(&mut self, argument: &TemplateArgument) -> String {
        let value = argument.value.as_ref().map(|value| self.evaluate(value));
        match value.map(|value| value.data) {
            Some(Data::Integer { value, bits: 1, .. }) => (value != 0).to_string(),
            Some(Data::Integer { value, .. }) => value.to_string(),
            _ => match argument.kind.as_ref().map(|kind| self.resolved(kind)) {
                Some(kind) => self.spelt_type(&kind),
                None => self.program.text.spelling(argument.at.clone()),
            },
        }
    }
}

fn is_warp_size(expression: &Expression) -> bool {
    matches!(&expression.kind, ExpressionKind::Member(_, member) if &*member.path == "warpSize")
}

/// The values that an array of arrays is made of.
fn leaves(value: &Value) -> Vec<&Value> {
    match &value.data {
        Data::List(items) => items.iter().flat_map(|(_, item)| leaves(item)).collect(),
        _ => vec![value],
    }
}

fn sized(bytes: i128) -> Value {
    Value::integer(bytes, &SIZE)
}

fn rounded_up(size: i128, alignment: i128) -> i128 {
    size.div_euclid(alignment).saturating_add(i128::from(size.rem_euclid(alignment) != 0)).saturating_mul(alignment)
}
